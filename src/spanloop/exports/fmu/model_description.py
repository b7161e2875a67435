"""modelDescription.xml and buildDescription.xml of a unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import quoteattr

import spanloop
from spanloop.exports.fmu.units import BASE_UNITS
from spanloop.exports.fmu.variables import INPUT, OUTPUT, PARAMETER, POSITION, RATE, TIME, VELOCITY, Variable

TOLERANCE = 1e-8  # relative, that an importer's solver is advised to use
OPTIONS = "-O2 -std=c99 -ffp-contract=off"  # of compilers


@dataclass(frozen=True)
class Description:
    """What the description of a unit says.

    dependencies: for each output and rate, by its reference, the references that it depends on.
    """

    name: str
    identifier: str
    token: str
    variables: Sequence[Variable]
    dependencies: Mapping[int, Sequence[int]]
    step: float
    kinds: Sequence[str]
    closes: bool  # whether Model Exchange needs projections
    ends: bool  # whether a step can end the simulation

    def text(self) -> str:
        """The XML text."""
        body = [*self._interfaces(), *self._units(), *_LOG_CATEGORIES]
        body += [_element("DefaultExperiment", startTime=0.0, stopTime=1.0, tolerance=TOLERANCE, stepSize=self.step)]
        body += ["<ModelVariables>", *(f"  {self._variable(x)}" for x in self.variables), "</ModelVariables>"]
        body += ["<ModelStructure>", *(f"  {x}" for x in self._structure()), "</ModelStructure>"]
        head = _element(
            "fmiModelDescription",
            closed=False,
            fmiVersion="3.0",
            modelName=self.name,
            instantiationToken=self.token,
            generationTool=f"spanloop {spanloop.__version__}",
            variableNamingConvention="flat",
        )
        lines = ['<?xml version="1.0" encoding="UTF-8"?>', head, *(f"  {x}" for x in body), "</fmiModelDescription>"]
        return "\n".join(lines) + "\n"

    def _interfaces(self) -> list[str]:
        both: dict[str, Any] = {
            "modelIdentifier": self.identifier,
            "canGetAndSetFMUState": True,
            "canSerializeFMUState": True,
        }
        out = []
        if "ModelExchange" in self.kinds:
            out.append(_element("ModelExchange", **both, needsCompletedIntegratorStep=self.closes))
        if "CoSimulation" in self.kinds:
            out.append(
                _element(
                    "CoSimulation",
                    **both,
                    canHandleVariableCommunicationStepSize=True,
                    fixedInternalStepSize=self.step,
                    mightReturnEarlyFromDoStep=self.ends,
                )
            )
        return out

    def _units(self) -> list[str]:
        used = dict.fromkeys(x.unit for x in self.variables if x.unit)
        lines = ["<UnitDefinitions>"]
        for unit in used:
            if unit in BASE_UNITS:
                powers: dict[str, Any] = dict(BASE_UNITS[unit])
                base = _element("BaseUnit", **powers)
                lines.append(f"  {_element('Unit', closed=False, name=unit)}{base}</Unit>")
            else:
                lines.append(f"  {_element('Unit', name=unit)}")
        return [*lines, "</UnitDefinitions>"]

    def _variable(self, x: Variable) -> str:
        causality, variability = _ROLES[x.kind]
        more: dict[str, Any] = {"unit": x.unit} if x.unit else {}
        if x.least is not None:
            more["min"] = x.least
        if x.kind in (PARAMETER, POSITION, VELOCITY):
            more["initial"] = "exact"
        elif x.kind in (OUTPUT, RATE):
            more["initial"] = "calculated"
        if x.kind == RATE:
            more["derivative"] = x.state
        if x.start is not None:
            more["start"] = x.start
        return _element(
            "Float64",
            name=x.name,
            valueReference=x.reference,
            description=x.description,
            causality=causality,
            variability=variability,
            **more,
        )

    def _structure(self) -> list[str]:
        outputs = [x for x in self.variables if x.kind in (POSITION, VELOCITY, OUTPUT)]
        rates = [x for x in self.variables if x.kind == RATE]
        known = {x.reference for x in self.variables if x.kind in (TIME, INPUT, POSITION, VELOCITY)}
        out = [self._unknown("Output", x, known) for x in outputs]
        out += [self._unknown("ContinuousStateDerivative", x, known) for x in rates]
        first = {x.reference for x in self.variables if x.kind != OUTPUT and x.kind != RATE}
        return out + [self._unknown("InitialUnknown", x, first) for x in (*outputs, *rates) if x.start is None]

    def _unknown(self, element: str, x: Variable, known: set[int]) -> str:
        listed = " ".join(str(k) for k in self.dependencies[x.reference] if k in known)
        return _element(element, valueReference=x.reference, dependencies=listed)


_ROLES = {
    TIME: ("independent", "continuous"),
    INPUT: ("input", "continuous"),
    PARAMETER: ("parameter", "fixed"),
    POSITION: ("output", "continuous"),
    VELOCITY: ("output", "continuous"),
    OUTPUT: ("output", "continuous"),
    RATE: ("local", "continuous"),
}
_LOG_CATEGORIES = [
    "<LogCategories>",
    '  <Category name="logStatusWarning" description="what was changed or may surprise"/>',
    '  <Category name="logStatusDiscard" description="why a step or a value was refused"/>',
    '  <Category name="logStatusError" description="calls that do not fit"/>',
    "</LogCategories>",
]


def build_description(identifier: str) -> str:
    """buildDescription.xml of the sources."""
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<fmiBuildDescription fmiVersion="3.0">',
        f"  {_element('BuildConfiguration', closed=False, modelIdentifier=identifier)}",
        f"    {_element('SourceFileSet', closed=False, language='C99', compilerOptions=OPTIONS)}",
        f"      {_element('SourceFile', name=f'{identifier}.c')}",
        "    </SourceFileSet>",
        '    <Library name="m" external="true" description="sqrt and fabs; not needed on Windows"/>',
        "  </BuildConfiguration>",
        "</fmiBuildDescription>",
    ]
    return "\n".join(lines) + "\n"


def _element(name: str, /, closed: bool = True, **attributes: Any) -> str:
    """An element without content, or its opening tag."""
    text = "".join(f" {key}={quoteattr(_written(x))}" for key, x in attributes.items())
    return f"<{name}{text}{'/' if closed else ''}>"


def _written(x: Any) -> str:
    if isinstance(x, bool):
        return "true" if x else "false"
    return repr(x) if isinstance(x, float) else str(x)
