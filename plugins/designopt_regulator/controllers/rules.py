"""Controller settings by well-known rules, for plants with one or two lags, or an integrator, and delay."""

from __future__ import annotations

from collections.abc import Callable, Mapping

#: A rule: gain, time constant (None of an integrator), second time constant and delay, and whether a PID is wanted.
Rule = Callable[[float, float | None, float, float, bool], Mapping[str, float]]


def simc(gain: float, lag: float | None, second_lag: float, delay: float, pid: bool) -> Mapping[str, float]:
    """Skogestad, Journal of Process Control 13 (2003) 291, with a closed loop as fast as the delay; a second lag is
    cancelled by the derivative, or halved for a PI."""
    if not pid:
        lag, delay = None if lag is None else lag + 0.5 * second_lag, delay + 0.5 * second_lag
    slow = 2.0 * delay
    kp, ti = (1.0 / (gain * slow), 4.0 * slow) if lag is None else (lag / (gain * slow), min(lag, 4.0 * slow))
    share = 1.0 + (second_lag / ti if pid else 0.0)  # from the series form
    return {"kp": kp * share, "ti": ti * share, "td": second_lag / share if pid else 0.0, "b": 1.0}


def amigo(gain: float, lag: float | None, second_lag: float, delay: float, pid: bool) -> Mapping[str, float]:
    """Åström & Hägglund, Journal of Process Control 14 (2004) 635; a second lag is halved."""
    L, T = delay + 0.5 * second_lag, None if lag is None else lag + 0.5 * second_lag
    if T is None:
        kp, ti, td = (0.45 / (gain * L), 8.0 * L, 0.5 * L) if pid else (0.35 / (gain * L), 13.4 * L, 0.0)
        return {"kp": kp, "ti": ti, "td": td, "b": 0.0}
    b = 0.0 if L < T else 1.0
    if pid:
        ti = (0.4 * L + 0.8 * T) / (L + 0.1 * T) * L
        return {"kp": (0.2 + 0.45 * T / L) / gain, "ti": ti, "td": 0.5 * L * T / (0.3 * L + T), "b": b}
    kp = (0.15 + (0.35 - L * T / (L + T) ** 2) * T / L) / gain
    return {"kp": kp, "ti": 0.35 * L + 13.0 * L * T**2 / (T**2 + 12.0 * L * T + 7.0 * L**2), "td": 0.0, "b": b}


def ziegler_nichols(gain: float, lag: float | None, second_lag: float, delay: float, pid: bool) -> Mapping[str, float]:
    """Ziegler & Nichols, Transactions of the ASME 64 (1942) 759, from the step response; a second lag is halved."""
    L = delay + 0.5 * second_lag
    slope = gain * L if lag is None else gain * L / (lag + 0.5 * second_lag)
    if pid:
        return {"kp": 1.2 / slope, "ti": 2.0 * L, "td": 0.5 * L, "b": 1.0}
    return {"kp": 0.9 / slope, "ti": L / 0.3, "td": 0.0, "b": 1.0}


def lambda_tuning(gain: float, lag: float | None, second_lag: float, delay: float, pid: bool) -> Mapping[str, float]:
    """Lambda tuning with a closed loop as fast as the plant (Åström & Hägglund, Advanced PID Control, 2006, section
    6.5), of an integrator as slow as three delays; a second lag is halved."""
    L, T = delay + 0.5 * second_lag, None if lag is None else lag + 0.5 * second_lag
    if T is None:
        return {"kp": 7.0 / (16.0 * gain * L), "ti": 7.0 * L, "td": 0.0, "b": 1.0}
    if pid:
        return {"kp": 1.0 / gain, "ti": T + 0.5 * L, "td": T * L / (L + 2.0 * T), "b": 1.0}
    return {"kp": T / (gain * (L + T)), "ti": T, "td": 0.0, "b": 1.0}


RULES: Mapping[str, Rule] = {
    "simc": simc,
    "amigo": amigo,
    "ziegler_nichols": ziegler_nichols,
    "lambda": lambda_tuning,
}


def settings_by_rules(numbers: Mapping[str, float], *, pid: bool) -> dict[str, dict[str, float]]:
    """Settings by rule for a plant with the `numbers` of fopdt, ipdt or sopdt (times in s); none without a delay, from
    which the rules take how fast the loop may be.

    The derivative's filter is a tenth of its time, or of the integral time where a rule has no derivative: it has no
    effect then, but a range may be logarithmic.
    """
    lag, second_lag = numbers.get("time_constant"), numbers.get("time_constant_2", 0.0)
    if lag is not None and lag < second_lag:
        lag, second_lag = second_lag, lag
    if not numbers.get("delay", 0.0) + 0.5 * second_lag > 0.0:
        return {}
    plant = numbers["gain"], lag, second_lag, numbers["delay"]
    settings = {name: dict(rule(*plant, pid)) for name, rule in RULES.items()}
    return {
        name: {**values, "tf": 0.1 * (values["td"] or values["ti"]), "tt": values["ti"]}
        for name, values in settings.items()
    }
