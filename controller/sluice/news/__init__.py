"""Flash-crowd control (NEWS, Chen & Heidemann). The input is observations, the output is limits. Pure: no switch,
socket or clock."""

from .decision import Decision, Observation, Target
from .errors import ObservationError, OptionsError
from .filters import Average
from .flows import FlowCollector
from .flowshare import FlowShare, Slots
from .limit import Limit
from .modes import MODES
from .news import News
from .options import NewsMode, NewsOptions, NewsProductionOptions
from .pools import Pool, Ratios
from .rates import FlowRates, fastest_mean
from .requests import Requests
from .split import Split, Splitter, whole
from .usual import Usual
from .verdict import Cause, Verdict

__all__ = [
    "MODES",
    "Average",
    "Cause",
    "Decision",
    "FlowCollector",
    "FlowRates",
    "FlowShare",
    "Limit",
    "News",
    "NewsMode",
    "NewsOptions",
    "NewsProductionOptions",
    "Observation",
    "ObservationError",
    "OptionsError",
    "Pool",
    "Ratios",
    "Requests",
    "Slots",
    "Split",
    "Splitter",
    "Target",
    "Usual",
    "Verdict",
    "fastest_mean",
    "whole",
]
