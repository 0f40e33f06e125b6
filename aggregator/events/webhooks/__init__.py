"""Webhooks: calls to other systems when an event fires, doubles, merges or closes (Standard Webhooks).

Delivery is at least once: the dispatcher saves a delivery before it is sent, and its result afterwards. After
a crash in between, it is sent again under the same ``webhook-id``, by which receivers recognize it.
"""
