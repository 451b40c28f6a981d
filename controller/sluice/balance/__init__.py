"""Balancing by R, the SYN loss ratio of Ohta & Andou. The input is counts and a time, the output is ratios and weights.
Pure: no switch, socket or clock."""

from .balancer import Balancer, Decision
from .counts import CounterReset, Counts
from .diagnosis import Condition, Diagnosis
from .metric import ratio_of_unanswered, ratio_with_every_synack
from .options import BalanceOptions, Mode, ProductionOptions
from .policies import POLICIES
from .policy import Interval, Outcome, Policy
from .ratios import Member, fair_shares
from .spill import full_servers, refuses
from .weights import largest_remainder, to_ratios, weight_sum

__all__ = [
    "POLICIES",
    "BalanceOptions",
    "Balancer",
    "Condition",
    "CounterReset",
    "Counts",
    "Decision",
    "Diagnosis",
    "Interval",
    "Member",
    "Mode",
    "Outcome",
    "Policy",
    "ProductionOptions",
    "fair_shares",
    "full_servers",
    "largest_remainder",
    "ratio_of_unanswered",
    "ratio_with_every_synack",
    "refuses",
    "to_ratios",
    "weight_sum",
]
