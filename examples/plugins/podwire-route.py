# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""podwire-route: adds, removes and checks routes of a container, and hands the result on changed; see README.md."""

from __future__ import annotations

import sys

import libcni
from libcni import fields, gojson

INVALID_CONFIG, LOST = 7, 999
DEFAULTS = ("0.0.0.0/0", "::/0")


def setting(config, key, default):
    value = config.get(key, default)
    if type(value) is not type(default):
        raise libcni.PluginError(INVALID_CONFIG, f"{key}: expected {type(default).__name__}, found {value!r}")
    return value


class Settings:
    def __init__(self, config):
        self.flush_routes = setting(config, "flushroutes", False)
        self.flush_gateway = setting(config, "flushgateway", False)
        self.removed = routes_of(config, "delroutes")
        self.added = routes_of(config, "addroutes")
        self.skip_check = setting(config, "skipcheck", False)
        self.idle = not (self.flush_routes or self.flush_gateway or self.removed or self.added)

    def removes(self, route):
        """Tell whether a route of the result or the kernel goes."""
        return (
            self.flush_routes
            or (self.flush_gateway and route.dst in DEFAULTS)
            or any(removed.dst == route.dst and removed.gw in ("", route.gw) for removed in self.removed)
        )

    def in_kernel(self, ifname):
        """Return the routes of the kernel that go. In a flush, those stay that the kernel made for the addresses."""
        from libcni import netns

        named = {route.dst for route in self.removed}
        routes = [route for route in netns.routes(ifname) if self.removes(route)]
        return [route for route in routes if route.gw or route.dst in DEFAULTS or route.dst in named]


def routes_of(config, key):
    routes = []
    for at, entry in enumerate(setting(config, key, [])):
        if not isinstance(entry, dict) or "dst" not in entry:
            raise libcni.PluginError(INVALID_CONFIG, f"{key}/{at}: expected an object with dst, found {entry!r}")
        try:
            routes.append(libcni.Route(**fields.decode_route(entry, f"{key}/{at}")))
        except libcni.JSONError as error:
            raise libcni.PluginError(INVALID_CONFIG, str(error)) from None
    return routes


def previous(args):
    """Return the result of the plugins before this one, with the keys that libcni does not know."""
    if not isinstance(args.config.get("prevResult"), dict):
        raise libcni.PluginError(INVALID_CONFIG, "there is no prevResult; put podwire-route after an interface plugin")
    return {"cniVersion": args.cni_version, **args.config["prevResult"]}


def add(args):
    settings, raw = Settings(args.config), previous(args)
    if not settings.idle:
        # Imported where it is needed: that takes longer than a call that has nothing to do.
        from libcni import netns

        with netns.inside(args.netns):
            for route in settings.in_kernel(args.ifname):
                netns.delete_route(libcni.Route(route.dst, route.gw, priority=route.priority), args.ifname)
            for route in settings.added:
                netns.add_route(route, args.ifname)
        raw = changed(settings, args, raw)
    # Printed instead of returned: a returned Result loses the keys that libcni does not know.
    sys.stdout.write(gojson.dumps(raw, 4).decode())


def changed(settings, args, raw):
    """Return the result with the routes that are there now."""
    result = args.prev_result
    if "ip4" in raw or "ip6" in raw:
        # Up to 0.2.0, routes belong to an address.
        kept = [route for route in result.routes if not settings.removes(route)]
        return result.replace(routes=[*kept, *settings.added]).as_version(args.cni_version).to_dict()
    routes = [route.to_dict() for route in result.routes if not settings.removes(route)]
    added = (route.to_dict() for route in settings.added)
    return {**raw, "routes": [*routes, *(route for route in added if route not in routes)]}


def check(args):
    settings = Settings(args.config)
    if settings.skip_check or settings.idle:
        return
    from libcni import netns

    with netns.inside(args.netns):
        for route in settings.added:
            if not netns.has_route(route, args.ifname):
                raise libcni.PluginError(LOST, f"the route to {route.dst} on {args.ifname} is missing")
        added = {route.dst for route in settings.added}
        for route in settings.in_kernel(args.ifname):
            if route.dst not in added:
                raise libcni.PluginError(LOST, f"the route to {route.dst} on {args.ifname} is there again")


def delete(args):
    """Remove what ADD added. The interface or the namespace may be gone, and the configuration broken."""
    from libcni import netns

    try:
        added = Settings(args.config).added
        if args.netns and added:
            with netns.inside(args.netns):
                for route in added:
                    netns.delete_route(route, args.ifname)
    except (libcni.NamespaceError, libcni.LinkError) as error:
        if not error.gone:
            raise
    except libcni.PluginError as error:
        sys.stderr.write(f"podwire-route: {error}\n")


def status(args):
    Settings(args.config)


libcni.plugin_main(
    add=add,
    check=check,
    delete=delete,
    status=status,
    about="podwire-route: adds, removes and checks routes of a container",
    error_version=True,
)
