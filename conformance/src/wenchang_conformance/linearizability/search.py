"""The search for one order of a register's steps that explains every answer.

A depth-first search in the manner of Wing and Gong, with Lowe's memory of positions that were seen
to lead nowhere. Six facts keep it small, none of which loses a solution:

- *Free steps.* A step that leaves the state alone and is legal now may be taken now: wherever a
  solution takes it, it may be taken here instead. Only steps that change the state are choices.
- *Needs.* Every write has bytes of its own and takes effect at most once, so a state other than
  absence never returns. A state that some definite step still needs must not be left.
- *Lazy unknowns.* A step with an unknown outcome is useful only if it makes a step legal that is
  not; one that does not can be dropped or moved behind the next step. So unknown steps are tried
  only as chains that lead to what some definite step needs.
- *Fewer is better.* Of two positions that differ only in the unknown steps used up, whatever can
  follow the one that used more can follow the other.
- *Unseen puts.* A put that no step refers to, while no step asks that the state be different from
  another, can stand right before any other put: nothing that follows notices. So such puts are
  taken together with the next put, whichever it is.
- *Real time* bounds the choices: a step can be next only if no other open step ended before it
  began, so with n clients there are never more than n.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from wenchang_conformance.linearizability.register import ABSENT, ANY, KEEP, Step

_LATER = 1 << 63


@dataclass(frozen=True, slots=True, kw_only=True)
class Solved:
    """A linearization: the steps taken, in order. Unknown steps not taken had no effect."""

    order: tuple[Step, ...]
    visited: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsolvable:
    """No linearization exists. `order` is the longest beginning of one that was found."""

    order: tuple[Step, ...]
    visited: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfBudget:
    """The budget was used up before the question was decided."""

    visited: int


@dataclass(slots=True)
class _Frame:
    """A position on the way: where the trail stood, and the moves still to try."""

    trail: int
    state: int
    used: int
    moves: Iterator[tuple[int, ...]] = field(repr=False)


class _Search:
    """Definite steps are numbered from 0 in order of their start, unknown ones from ~0 down."""

    def __init__(self, steps: Sequence[Step], initial: int, states: int) -> None:
        definite = sorted((step for step in steps if step.end is not None), key=_start)
        self.unknown = sorted(
            (step for step in steps if step.end is None and step.effect != KEEP), key=_start
        )
        self.steps = definite
        count = len(definite)
        self.start = [step.start for step in definite]
        self.end = [_LATER if step.end is None else step.end for step in definite]
        self.equals = [step.equals for step in definite]
        self.differs = [step.differs for step in definite]
        self.effect = [step.effect for step in definite]
        # A ring of the steps not taken yet; its head is the number behind the last step.
        size = count + 1
        self.next = [(each + 1) % size for each in range(size)]
        self.previous = [(each - 1) % size for each in range(size)]
        self.head = count
        self.taken = 0
        self.trail: list[int] = []
        self.state = initial
        self.used = 0
        self.needs = [0] * states
        for wanted in self.equals:
            if wanted > ABSENT:
                self.needs[wanted] += 1
        self.writer = {
            step.effect: number for number, step in enumerate(self.unknown) if step.effect > ABSENT
        }
        self.removers = [n for n, step in enumerate(self.unknown) if step.effect == ABSENT]
        self.unseen = self._unseen_puts()
        self.seen: dict[tuple[int, int, int], list[int]] = {}

    def _unseen_puts(self) -> list[bool]:
        """Tell which definite steps are puts that nothing notices."""
        noticed = {step.equals for step in (*self.steps, *self.unknown)}
        if any(step.differs != ANY for step in self.unknown):
            return [False] * len(self.steps)
        last = max((step.end or 0 for step in self.steps if step.differs != ANY), default=-1)
        return [
            step.equals == step.differs == ANY
            and step.effect > ABSENT
            and step.effect not in noticed
            and step.start > last
            for step in self.steps
        ]

    # Moving --------------------------------------------------------------------------------

    def take(self, number: int) -> bool:
        """Take a legal definite step; False if that leaves a state which is still needed."""
        before, after = self.previous[number], self.next[number]
        self.next[before] = after
        self.previous[after] = before
        self.taken |= 1 << number
        self.trail.append(number)
        wanted = self.equals[number]
        if wanted > ABSENT:
            self.needs[wanted] -= 1
        effect = self.effect[number]
        return effect == KEEP or self._leave_for(effect)

    def use(self, number: int) -> bool:
        """Take an unknown step; False as for `take`."""
        self.used |= 1 << number
        self.trail.append(~number)
        return self._leave_for(self.unknown[number].effect)

    def _leave_for(self, effect: int) -> bool:
        left, self.state = self.state, effect
        return self.needs[left] == 0  # nothing is ever counted as needing absence

    def rewind(self, frame: _Frame) -> None:
        """Go back to where a frame was made."""
        while len(self.trail) > frame.trail:
            number = self.trail.pop()
            if number < 0:
                continue
            before, after = self.previous[number], self.next[number]
            self.next[before] = number
            self.previous[after] = number
            self.taken ^= 1 << number
            wanted = self.equals[number]
            if wanted > ABSENT:
                self.needs[wanted] += 1
        self.state = frame.state
        self.used = frame.used

    # Looking -------------------------------------------------------------------------------

    def legal(self, number: int) -> bool:
        """Whether a definite step is legal in the present state."""
        return self.equals[number] in (ANY, self.state) and self.differs[number] != self.state

    def choices(self) -> tuple[list[int], int]:
        """Return the steps that real time allows to be next, and the time when one must be over."""
        bound = _LATER
        found: list[int] = []
        number = self.next[self.head]
        while number != self.head and self.start[number] <= bound:
            found.append(number)
            bound = min(bound, self.end[number])
            number = self.next[number]
        return found, bound

    def settle(self) -> tuple[list[int], int]:
        """Take every free step; return the choices that are left, as `choices` does."""
        while True:
            found, bound = self.choices()
            free = [each for each in found if self.effect[each] == KEEP and self.legal(each)]
            if not free:
                return found, bound
            for number in free:
                self.take(number)

    def is_known(self) -> bool:
        """Whether this position, or a better one, has been seen; remember it if not."""
        low = self.next[self.head]
        position = (low, self.taken >> low, self.state)
        uses = self.seen.get(position)
        if uses is None:
            self.seen[position] = [self.used]
            return False
        if any(used & ~self.used == 0 for used in uses):
            return True
        uses[:] = [used for used in uses if self.used & ~used != 0]
        uses.append(self.used)
        return False

    def moves(self, found: list[int], bound: int) -> Iterator[tuple[int, ...]]:
        """Yield what may come next: a definite step, or a chain of unknown ones (as ~number)."""
        found.sort(key=self.end.__getitem__)
        unseen = tuple(number for number in found if self.unseen[number])
        if unseen:
            yield unseen
        for number in found:
            if self.legal(number) and not self.unseen[number]:
                is_put = self.equals[number] == self.differs[number] == ANY
                yield (*unseen, number) if is_put else (number,)
        offered: set[tuple[int, ...]] = set()
        for number in found:
            if self.legal(number):
                continue
            for chain in self.chains(number, bound):
                if chain not in offered:
                    offered.add(chain)
                    yield tuple(~each for each in chain)

    # Chains of unknown steps ---------------------------------------------------------------

    def chains(self, number: int, bound: int) -> Iterator[tuple[int, ...]]:
        """Yield the chains of unknown steps that make a definite step legal."""
        wanted = self.equals[number]
        if wanted != ANY:
            yield from self._reach(wanted, bound, self.used)
            return
        # It needs the state to be another one than it is: any change will do.
        for each, step in enumerate(self.unknown):
            if self._open(each, bound, self.used) and step.legal(self.state):
                yield (each,)

    def _open(self, number: int, bound: int, used: int) -> bool:
        return not used >> number & 1 and self.unknown[number].start <= bound

    def _reach(self, wanted: int, bound: int, used: int) -> Iterator[tuple[int, ...]]:
        """Yield chains from the present state to a wanted one."""
        if wanted != ABSENT:
            last = self.writer.get(wanted)
            if last is not None and self._open(last, bound, used):
                yield from self._with(last, bound, used)
            return
        for last in self.removers:
            if self._open(last, bound, used):
                yield from self._with(last, bound, used)

    def _with(self, last: int, bound: int, used: int) -> Iterator[tuple[int, ...]]:
        """Yield chains that end with this unknown step."""
        step = self.unknown[last]
        if step.legal(self.state):
            yield (last,)
            return
        used |= 1 << last
        if step.equals != ANY:
            for chain in self._reach(step.equals, bound, used):
                yield (*chain, last)
            return
        # It removes some object, and there is none: any unknown write may have made one.
        for each in self.writer.values():
            if self._open(each, bound, used):
                for chain in self._with(each, bound, used):
                    yield (*chain, last)


def _start(step: Step) -> int:
    return step.start


def linearize(
    steps: Sequence[Step], *, initial: int, max_visits: int
) -> Solved | Unsolvable | OutOfBudget:
    """Look for an order of the steps that begins in state `initial`.

    At most `max_visits` positions are visited; time and memory are proportional to that.
    """
    states = 1 + max([initial, *(max(step.equals, step.effect) for step in steps)])
    search = _Search(steps, initial, states)
    longest: list[int] = []
    visited = 0
    frames: list[_Frame] = []
    while True:
        found, bound = search.settle()
        if len(search.trail) > len(longest):
            longest = list(search.trail)
        if not found:
            return Solved(order=_order(search, search.trail), visited=visited)
        if not search.is_known():
            moves = search.moves(found, bound)
            frames.append(_Frame(len(search.trail), search.state, search.used, moves))
        if not _advance(search, frames):
            return Unsolvable(order=_order(search, longest), visited=visited)
        visited += 1
        if visited >= max_visits:
            return OutOfBudget(visited=visited)


def _advance(search: _Search, frames: list[_Frame]) -> bool:
    """Make the next move that does not end at once; False when there is none left."""
    while frames:
        frame = frames[-1]
        search.rewind(frame)
        for move in frame.moves:
            if all(search.take(each) if each >= 0 else search.use(~each) for each in move):
                return True
            search.rewind(frame)
        frames.pop()
    return False


def _order(search: _Search, trail: Sequence[int]) -> tuple[Step, ...]:
    return tuple(search.steps[each] if each >= 0 else search.unknown[~each] for each in trail)
