# Copyright: (c) 2026, the podwire.cni authors
# Simplified BSD License (see LICENSES/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
# SPDX-License-Identifier: BSD-2-Clause
"""ADD and DEL of all networks of a pod, in order and with roll-back. The caller runs each network's ADD and DEL."""

from __future__ import annotations

from ..errors import CNIError, MultiError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

    class _Named(t.Protocol):
        """A network as far as this file knows it."""

        @property
        def network(self) -> str:
            """Its name."""

    _Network = t.TypeVar("_Network", bound=_Named)
    _Result = t.TypeVar("_Result")
    _Failures = t.List[t.Tuple[int, CNIError]]


class AddNetworksError(MultiError):
    """The ADD of the network at `index` failed for `cause`.

    `left`: the networks whose DEL failed in the roll-back, as (index, error). Multus does not report them; what is left
    of a network is never removed unless it is known.
    """

    def __init__(self, msg: str, index: int, cause: CNIError, left: _Failures) -> None:
        super().__init__(msg, [cause, *(error for _index, error in left)])
        self.index = index
        self.cause = cause
        self.left = left


class DelNetworksError(MultiError):
    """DEL failed for some networks: `left`, as (index, error). All others are removed."""

    def __init__(self, msg: str, left: _Failures) -> None:
        super().__init__(msg, [error for _index, error in left])
        self.left = left


def add_networks(
    delegates: t.Sequence[_Network], add: t.Callable[[_Network], _Result], delete: t.Callable[[_Network], None]
) -> list[_Result]:
    """Call `add` for each network in order and return the results; the first one is the pod's.

    If one fails, `delete` is called for it and for all before it, in reverse, each whatever became of the others.
    Raises `AddNetworksError`. `add` and `delete` raise `CNIError`.
    """
    results = []
    for index, delegate in enumerate(delegates):
        try:
            results.append(add(delegate))
        except CNIError as exc:
            left = _delete_all(delegates[: index + 1], delete)
            text = f'error adding container to network "{delegate.network}": {exc}'
            if left:
                failures = (f'network "{delegates[at].network}": {error}' for at, error in left)
                text += f"; DEL of what was added failed, too: {', '.join(failures)}"
            raise AddNetworksError(text, index, exc, left) from exc
    return results


def delete_networks(delegates: t.Sequence[_Network], delete: t.Callable[[_Network], None]) -> None:
    """Call `delete` for each network in reverse; one that fails stops none of the others. Raises `DelNetworksError`."""
    left = _delete_all(delegates, delete)
    if left:
        raise DelNetworksError(" / ".join(str(error) for _index, error in left), left)


def _delete_all(delegates: t.Sequence[_Network], delete: t.Callable[[_Network], None]) -> _Failures:
    failures = []
    for index in reversed(range(len(delegates))):
        try:
            delete(delegates[index])
        except CNIError as exc:
            failures.append((index, exc))
    return failures
