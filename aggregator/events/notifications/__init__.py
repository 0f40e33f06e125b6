"""Channels of notifications other than webhooks: e-mail and the services that Apprise knows.

    addresses.py       which addresses outgoing calls may reach (pure)
    channels.py        kinds of targets: what is allowed, how an address is checked and masked (pure)
    mail.py            e-mail through the SMTP server of the settings
    apprise_sender.py  one notification through Apprise, in a child process with a time limit
    apprise_child.py   that child process: the only code that imports Apprise

Nothing is imported here, so that the child process starts quickly.
"""
