"""The cases, by area. Each module has one mixin; `wenchang_conformance.suite` puts them together."""
