"""Sends one delivery to a target of any kind: signed webhook, e-mail, or a service that Apprise knows."""

from __future__ import annotations

import aiohttp
import msgspec

from aggregator.events.notifications.apprise_sender import AppriseSender
from aggregator.events.notifications.mail import SmtpServer, send_mail
from aggregator.events.webhooks.alert_payload import decode_message
from aggregator.events.webhooks.outbox import Delivery
from aggregator.events.webhooks.sender import DeliveryResult, make_session, send
from aggregator.events.webhooks.subscriptions import Subscription

NO_SMTP_SERVER = "e-mail is not set up: the administrator sets AGGREGATOR_SMTP_URL and AGGREGATOR_SMTP_SENDER"


class TargetSender:
    """Sends deliveries. ``allow_private``: private addresses may be called; ``smtp``: None for no e-mail."""

    def __init__(self, *, allow_private: bool, smtp: SmtpServer | None = None) -> None:
        self.allow_private, self.smtp = allow_private, smtp
        self._session: aiohttp.ClientSession | None = None
        self._apprise = AppriseSender(allow_private=allow_private)

    async def send(self, target: Subscription, delivery: Delivery, now_ms: int) -> DeliveryResult:
        """One attempt. Never raises, except when cancelled."""
        if target.kind == "webhook":
            if self._session is None:
                self._session = make_session(allow_private=self.allow_private)
            return await send(self._session, target, delivery, now_ms, allow_private=self.allow_private)
        try:
            message = decode_message(delivery.body)
        except msgspec.MsgspecError:
            return DeliveryResult("the stored notification is damaged")
        if target.kind == "apprise":
            return DeliveryResult(await self._apprise.send(target.url, message.title, message.body))
        if self.smtp is None:
            return DeliveryResult(NO_SMTP_SERVER)
        return DeliveryResult(
            await send_mail(self.smtp, target.url, message.title, message.body, delivery.id, now_ms)
        )

    async def close(self) -> None:
        """Close the connections. Idempotent."""
        if self._session is not None:
            await self._session.close()
            self._session = None
