# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Downloads over https, on the controller or on a host, with the standard library."""

from __future__ import annotations

import ssl
import time
from http.client import HTTPException
from typing import Any, BinaryIO, Optional
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from ..errors import HostError

SIZE_LIMIT = 512 << 20
"""In bytes. The official archives have about 50 MB."""
_SOCKET_TIMEOUT = 30.0
_TOTAL_TIMEOUT = 900.0
_CHUNK = 1 << 18


def check_url(url: str) -> None:
    """Raise HostError ``not_https`` unless *url* is an https URL with a host and without a user."""
    parts = urlsplit(url)
    if parts.scheme.lower() != "https" or not parts.hostname:
        raise HostError(
            f"src: {shown_url(url)} is not an https URL; without https, the file could be read or replaced on the way. "
            "Use https, or copy the file and set its path",
            code="not_https",
        )
    if "@" in parts.netloc:
        raise HostError(
            f"src: {shown_url(url)} has a user name or password in it, which is not supported; download the file in a "
            "separate task and set its path",
            code="not_https",
        )


def shown_url(url: str) -> str:
    """Return *url* for a message, without what may be secret: user, password and query."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


class _OnlyHttps(HTTPRedirectHandler):
    def redirect_request(
        self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Optional[Request]:
        if urlsplit(newurl).scheme.lower() != "https":
            raise HostError(
                f"{shown_url(req.full_url)} redirects to {shown_url(newurl)}, which is not https; nothing was "
                "downloaded. Use a URL that stays on https",
                code="not_https",
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class _TooLate(Exception):
    """The time limit of the whole download has expired."""


def _context(deadline: float) -> ssl.SSLContext:
    """Return a context for connections that can be read from until *deadline*.

    The timeout of a socket starts again with each byte received, in the headers as well as in the body.
    """

    class Socket(ssl.SSLSocket):
        def recv_into(self, *args: Any, **kwargs: Any) -> int:
            left = deadline - time.monotonic()
            if left <= 0:
                raise _TooLate
            self.settimeout(min(left, _SOCKET_TIMEOUT))
            try:
                return super().recv_into(*args, **kwargs)
            except OSError as error:
                if time.monotonic() >= deadline:
                    raise _TooLate from error
                raise

    context = ssl.create_default_context()
    context.sslsocket_class = Socket
    return context


def fetch(url: str, target: BinaryIO, limit: int = SIZE_LIMIT) -> None:
    """Download the https *url* to *target*, at most *limit* bytes.

    Proxies come from the environment (``https_proxy``, ``no_proxy``), trusted CAs from the system's store or from
    ``SSL_CERT_FILE``. Raises HostError ``not_https`` or ``download_failed``.
    """
    check_url(url)
    deadline = time.monotonic() + _TOTAL_TIMEOUT
    try:
        opener = build_opener(_OnlyHttps(), HTTPSHandler(context=_context(deadline)))
        with opener.open(Request(url, headers={"User-Agent": "podwire.cni"}), timeout=_SOCKET_TIMEOUT) as answer:
            announced = int(answer.headers.get("Content-Length") or 0)
            received = 0
            while True:
                chunk = answer.read(_CHUNK)
                if not chunk:
                    break
                received += len(chunk)
                if max(received, announced) > limit:
                    remedy = "use the URL of the archive, not of a page or image"
                    raise _failed(url, f"it is larger than {limit} bytes", remedy)
                target.write(chunk)
            if announced and received != announced:
                raise _failed(url, f"it ended after {received} of {announced} bytes", "run again")
    except _TooLate as error:
        raise _failed(url, f"it took longer than {_TOTAL_TIMEOUT:.0f} s", "use a closer mirror") from error
    except HTTPError as error:
        raise _failed(url, f"the server answered {error.code} {error.reason}", "check the URL") from error
    except URLError as error:
        reason = str(error.reason)
        if "CERTIFICATE_VERIFY_FAILED" in reason:
            remedy = "for a private CA, add it to the system's store or set SSL_CERT_FILE (environment) to its file"
        else:
            remedy = "check DNS and outbound HTTPS; set https_proxy (environment) if a proxy is needed"
        raise _failed(url, reason, remedy) from error
    except (OSError, HTTPException, ValueError) as error:
        reason = str(error) or type(error).__name__
        raise _failed(url, reason, "run again; if it fails again, use a mirror or a local file") from error


def _failed(url: str, reason: str, remedy: str) -> HostError:
    return HostError(f"cannot download {shown_url(url)}: {reason}; {remedy}", code="download_failed")
