"""The HTTP edge: the public contract v1 over aiohttp.

``requests``, ``responses`` and ``decoding`` hold the JSON of the contract and import no web framework, so the
command line reads and writes the same lines. ``endpoints`` is the one list of routes: the router,
the OpenAPI document and the documentation page are all made from it. A status code is chosen in
``errors`` and nowhere else.
"""
