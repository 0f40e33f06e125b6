"""Breaking events: burst detection, event repository, editor actions, notifications."""
