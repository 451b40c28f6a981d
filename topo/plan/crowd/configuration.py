"""The controller's configuration for the network of Chen & Heidemann's Figure 17."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sluice.switch.bucket import Bucket

from topo.plan.crowd.network import BYSTANDER, BYSTANDER_ADDRESS, OTHER, ROUTES, SWITCH_HOSTS, TARGET, TARGET_ADDRESS
from topo.plan.crowd.scenarios import BUCKET_S, Further, Settings
from topo.plan.network import ASKED_ONCE, HostPlan, service, switch_config


def controller_config(
    server: HostPlan,
    *,
    settings: Settings,
    thrift: bool = False,
    static_per_s: float | None = None,
    news: Mapping[str, object] | None = None,
    further: Sequence[Further] = (),
) -> dict[str, object]:
    """Return the content of sluice.yaml. The target service, whose only server is `server`, has a static limit
    (`static_per_s`), is limited by flash-crowd control (`news`), or has no limit.

    `static_per_s`: the limit in requests per second, before compression by `settings.k`. Its token bucket has the size
    that flash-crowd control would choose for the same limit. `news`: the block `news`. `further`: services besides the
    target and the bystander.
    """
    fixed: dict[str, object] = {"balance": {"mode": "fixed"}}
    admission: dict[str, object] = {}
    if static_per_s is not None:
        rate = static_per_s * settings.k
        bucket = Bucket.rounded(rate, rate * BUCKET_S / settings.k)
        admission["admission"] = {"rate_per_s": bucket.rate, "burst": bucket.burst}
    services = [
        service(TARGET, TARGET_ADDRESS, [server], **fixed, **admission),
        service(BYSTANDER, BYSTANDER_ADDRESS, [OTHER], **fixed),
        *(service(crowd.name, crowd.address, [crowd.server], crowd.port, **fixed) for crowd in further),
    ]
    more = {} if news is None else {"news": dict(news)}
    return switch_config(SWITCH_HOSTS, services, thrift=thrift, routes=ROUTES, neighbours=ASKED_ONCE, **more)
