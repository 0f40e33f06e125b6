"""Calls to other systems when an event fires, doubles, merges or closes: the Standard Webhooks scheme.

    hooks.py    which addresses want to be called, and for which events
    outbox.py   which calls are owed, when each is tried again, which were given up (pure)
    payload.py  what a call says (pure)
    sending.py  one call: a checked address, a signature, a time limit
    courier.py  a turn of the leader: changes into calls, calls out, results back

Saved before sent, and the answer saved afterwards: a crash in between sends a call again under the same
``webhook-id``, by which receivers recognise it. So calls come at least once, and none is forgotten.
"""

from aggregator.events.webhooks.dispatcher import WebhookDispatcher
from aggregator.events.webhooks.outbox import Delivery
from aggregator.events.webhooks.subscriptions import Subscription, Subscriptions

__all__ = ["Delivery", "Subscription", "Subscriptions", "WebhookDispatcher"]
