# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""podwire-route: adds, removes and checks routes of the container's interface, and hands the result on changed.

Configuration: `flushroutes` (remove all routes of the interface but those that its addresses make), `flushgateway`
(remove its default routes), `delroutes` and `addroutes` (lists of routes as in a result: `dst`, `gw`, `mtu`, `advmss`,
`priority`, `table`), `skipcheck`. They apply in this order. The keys are those of route-override.
"""

from __future__ import annotations

from ..libcni.errors import ERR_INTERNAL, JSONError, PluginError
from ..libcni.fields import Route, decode_route
from ..libcni.skel import plugin_main
from ..libcni.types import create
from .chained import bad_config, hand_on, previous, setting

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

    from ..libcni.skel import CmdArgs

ABOUT = "podwire-route: adds, removes and checks routes of a container"
_DEFAULTS = ("0.0.0.0/0", "::/0")


class _Settings:
    def __init__(self, config: t.Mapping[str, t.Any]) -> None:
        self.flush_routes = setting(config, "flushroutes", False)
        self.flush_gateway = setting(config, "flushgateway", False)
        self.removed = _routes(config, "delroutes")
        self.added = _routes(config, "addroutes")
        self.skip_check = setting(config, "skipcheck", False)

    @property
    def idle(self) -> bool:
        """Tell whether nothing is to do."""
        return not (self.flush_routes or self.flush_gateway or self.removed or self.added)

    def removes(self, route: Route) -> bool:
        """Tell whether a route of the result or the kernel goes."""
        return (
            self.flush_routes
            or (self.flush_gateway and route.dst in _DEFAULTS)
            or any(one.dst == route.dst and one.gw in ("", route.gw) for one in self.removed)
        )


def _routes(config: t.Mapping[str, t.Any], key: str) -> list[Route]:
    out = []
    for at, entry in enumerate(setting(config, key, [])):
        if not isinstance(entry, dict) or "dst" not in entry:
            raise bad_config(f"{key}/{at}: expected an object with dst, found {entry!r}")
        try:
            out.append(Route(**decode_route(entry, f"{key}/{at}")))
        except JSONError as exc:
            raise bad_config(str(exc)) from None
    return out


def _present(settings: _Settings, ifname: str) -> list[Route]:
    """Return the routes of the kernel that go. Those that addresses make lead to no gateway and stay in a flush."""
    from ..libcni import netns

    there = [route for route in netns.routes(ifname) if settings.removes(route)]
    kept = [route for route in there if not route.gw and route.dst not in _DEFAULTS]
    return [route for route in there if route not in kept or any(one.dst == route.dst for one in settings.removed)]


def _add(args: CmdArgs) -> None:
    settings, raw = _Settings(args.config), previous(args)
    if settings.idle:
        hand_on(raw)
        return
    # Imported where it is needed: it takes longer than a call that has nothing to do.
    from ..libcni import netns

    with netns.inside(args.netns):
        for route in _present(settings, args.ifname):
            netns.delete_route(Route(route.dst, route.gw, priority=route.priority), args.ifname)
        for route in settings.added:
            netns.add_route(route, args.ifname)
    hand_on(_changed(settings, args, raw))


def _changed(settings: _Settings, args: CmdArgs, raw: dict[str, t.Any]) -> dict[str, t.Any]:
    result = args.prev_result
    if result is None or "ip4" in raw or "ip6" in raw:
        # Up to 0.2.0, routes belong to an address.
        old = result or create(args.cni_version, b"{}")
        kept = [route for route in old.routes if not settings.removes(route)]
        changed: dict[str, t.Any] = old.replace(routes=[*kept, *settings.added]).as_version(args.cni_version).to_dict()
        return changed
    routes = [route.to_dict() for route in result.routes if not settings.removes(route)]
    added = [route.to_dict() for route in settings.added]
    routes += [route for route in added if route not in routes]
    return {**{key: value for key, value in raw.items() if key.lower() != "routes"}, "routes": routes}


def _delete(args: CmdArgs) -> None:
    """Remove what ADD added. The interface or the namespace may be gone, and the configuration broken."""
    from ..libcni import netns

    try:
        added = _Settings(args.config).added
        if args.netns and added:
            with netns.inside(args.netns):
                for route in added:
                    netns.delete_route(route, args.ifname)
    except (netns.NamespaceError, netns.LinkError) as exc:
        if not exc.gone:
            raise
    except PluginError:
        return


def _check(args: CmdArgs) -> None:
    settings = _Settings(args.config)
    previous(args)
    if settings.skip_check or settings.idle:
        return
    from ..libcni import netns

    with netns.inside(args.netns):
        for route in settings.added:
            if not netns.has_route(route, args.ifname):
                raise PluginError(ERR_INTERNAL, f"the route to {route.dst} on {args.ifname} is missing")
        added = {route.dst for route in settings.added}
        for route in _present(settings, args.ifname):
            if route.dst not in added:
                raise PluginError(ERR_INTERNAL, f"the route to {route.dst} on {args.ifname} is there again")


def _status(args: CmdArgs) -> None:
    _Settings(args.config)


def main() -> None:
    """Be the plugin."""
    plugin_main(add=_add, check=_check, delete=_delete, status=_status, about=ABOUT, error_version=True)


if __name__ == "__main__":
    main()
