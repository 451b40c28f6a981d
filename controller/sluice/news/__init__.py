"""Flash-crowd control (NEWS). Pure: observations and a time in, decisions out; no switch, no socket, no clock."""

from .decision import Decision, Observation, Target
from .errors import ObservationError, OptionsError
from .limit import Limit
from .news import News
from .options import NewsMode, NewsOptions, NewsProductionOptions
from .rates import FlowRates, fastest_mean
from .requests import Requests
from .verdict import Cause, Verdict

__all__ = [
    "Cause",
    "Decision",
    "FlowRates",
    "Limit",
    "News",
    "NewsMode",
    "NewsOptions",
    "NewsProductionOptions",
    "Observation",
    "ObservationError",
    "OptionsError",
    "Requests",
    "Target",
    "Verdict",
    "fastest_mean",
]
