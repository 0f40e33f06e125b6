"""Which addresses outgoing calls may reach. Pure; imports nothing else, for the child process."""

from __future__ import annotations

import ipaddress

# Global unicast addresses of IPv6 (RFC 4291, section 2.4), and the NAT64 prefix (RFC 6052).
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
# Not global by the IANA registries, which some supported versions of Python do not know completely. Clouds
# answer metadata at 192.0.0.192.
_SPECIAL_PURPOSE = tuple(map(ipaddress.ip_network, ("192.0.0.0/24", "192.88.99.0/24", "3fff::/20")))


def is_public_address(address: str) -> bool:
    """Whether an IP address is public; an embedded IPv4 address (mapped, 6to4, Teredo, NAT64) must be too."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if inner is not None:
            return is_public_address(str(inner))
        if ip in _NAT64:
            return is_public_address(str(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)))
        if ip not in _GLOBAL_UNICAST:
            return False
    is_special = any(ip in network for network in _SPECIAL_PURPOSE)
    return ip.is_global and not ip.is_multicast and not is_special
