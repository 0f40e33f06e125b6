"""Webhooks: calls to other systems when an event fires, doubles, merges or closes (Standard Webhooks).

    subscriptions.py  the registered URLs and their filters, and the targets of desks
    outbox.py         pending deliveries, retry schedule, dead letters, delivery log
    payload.py        bodies of the calls and of the notifications of desks (pure)
    sender.py         one delivery: URL validation, signature, timeout; mail.py: by e-mail
    dispatcher.py     periodic task of the leader: changes to deliveries, deliveries to calls, results to the
                      store

Delivery is at least once: a delivery is saved before it is sent, and its result afterwards. After a crash in
between, it is sent again under the same ``webhook-id``, by which receivers recognize it.
"""
