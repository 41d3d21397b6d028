"""An entry point of `vllm.general_plugins` for vLLM 0.25 to 0.27, whose tiers are found only by their registered
names."""


def register() -> None:
    try:
        from vllm.v1.kv_offload.tiering.factory import SecondaryTierFactory  # type: ignore[import-not-found]
    except ImportError:  # a version without tiers
        return
    if "TerraceTier" not in SecondaryTierFactory._registry:
        SecondaryTierFactory.register_tier("TerraceTier", "terrace.vllm.tier", "TerraceTier")
