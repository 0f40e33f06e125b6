"""Desks: saved views with their own thresholds and notification targets.

    model.py    a desk, and its filter of events
    alerts.py   which events are reported when: thresholds, quiet hours, digests (pure)

The webhook dispatcher calls ``alerts.plan`` for new changes and sends the result through its outbox
(``webhooks/alert_payload.py``).
"""
