"""Plugins: declaration and discovery of models, objectives, solvers, aggregations, report parts and export formats.

A plugin is one decorated function or one small decorated class. Its keyword-only arguments (or annotated class fields)
are its settings; ``typing.Annotated`` with a `Quantity` gives each its unit, meaning and range. The checks of the study
file, the settings table and the JSON Schema come from these annotations.
"""

from designopt.plugin.beside import path_of, plugin_file_of, with_modules
from designopt.plugin.declaration import aggregation, exporter, model, objective, report_part, solver
from designopt.plugin.declared import Declaration, with_declared
from designopt.plugin.discovery import (
    GROUPS,
    InstalledPlugin,
    closest,
    find,
    installed_plugins,
    is_installed,
    load_file,
    names,
    refuse_while_loading,
)
from designopt.plugin.kinds import (
    AggregationPlugin,
    ExportPlugin,
    Kind,
    ModelPlugin,
    ObjectivePlugin,
    Plugin,
    ReportPlugin,
    SolverPlugin,
    Use,
)
from designopt.plugin.permission import (
    CannotRun,
    ForeignCode,
    Permission,
    allow_options,
    foreign_code,
    permission_of,
    refuse_not_allowed,
)
from designopt.plugin.plain_function import as_model
from designopt.plugin.signature import filled
from designopt.plugin.values import (
    Array,
    Diverged,
    Fidelity,
    Field,
    InputFile,
    InvalidDesign,
    InvalidSetting,
    PluginError,
    PluginFailed,
    ProgramFailed,
    Quantity,
    Unusable,
)

__all__ = [
    "GROUPS",
    "AggregationPlugin",
    "Array",
    "CannotRun",
    "Declaration",
    "Diverged",
    "ExportPlugin",
    "Fidelity",
    "Field",
    "ForeignCode",
    "InputFile",
    "InstalledPlugin",
    "InvalidDesign",
    "InvalidSetting",
    "Kind",
    "ModelPlugin",
    "ObjectivePlugin",
    "Permission",
    "Plugin",
    "PluginError",
    "PluginFailed",
    "ProgramFailed",
    "Quantity",
    "ReportPlugin",
    "SolverPlugin",
    "Unusable",
    "Use",
    "aggregation",
    "allow_options",
    "as_model",
    "closest",
    "exporter",
    "filled",
    "find",
    "foreign_code",
    "installed_plugins",
    "is_installed",
    "load_file",
    "model",
    "names",
    "objective",
    "path_of",
    "permission_of",
    "plugin_file_of",
    "refuse_not_allowed",
    "refuse_while_loading",
    "report_part",
    "solver",
    "with_declared",
    "with_modules",
]
