"""The policy of commands that judge all articles alike: ``--policy``, a rule or a profile."""

from __future__ import annotations

import argparse

from aggregator.app import build_policies
from aggregator.cli.common_options import requested_profile
from aggregator.dedup.policy import Policy
from aggregator.dedup.policy_profiles import PolicyProfiles
from aggregator.errors import ConfigurationError
from aggregator.settings import POLICY_NAMES, Settings


def selected_policy(args: argparse.Namespace, settings: Settings) -> tuple[str, Policy]:
    """Name and policy: that of the settings, or the profile that ``--policy`` names; rules are not applied.

    Raises ConfigurationError for an unknown profile and for a file that cannot be used.
    """
    policies = build_policies(settings)
    profile = requested_profile(args)
    if not profile:
        return policies.default.policy.name, policies.default.policy
    check_profile(policies, profile)
    return profile, policies.named(profile).policy


def check_profile(policies: PolicyProfiles, profile: str) -> None:
    """Raise ConfigurationError unless there is a profile of this name."""
    if profile not in policies.names:
        raise ConfigurationError(
            f"policy: {profile!r} is neither a rule ({', '.join(POLICY_NAMES)}) nor a profile of "
            f"policy_profiles_file ({', '.join(policies.names)})."
        )
