"""The step of an installation that `pyproject.toml` cannot tell: native code made ahead of time."""

import sys
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path

from setuptools import Command, setup
from setuptools.command.build import build

ROOT = Path(__file__).parent


class BuildObjects(Command):
    """Compile the runtime's own code into its folder `prebuilt` (``runtime/make_prebuilt.py``)."""

    description = "compile the runtime's own code"
    user_options = []  # noqa: RUF012 (setuptools wants a list)

    def initialize_options(self) -> None:
        self.editable_mode = False
        self.build_lib = None

    def finalize_options(self) -> None:
        self.set_undefined_options("build_py", ("build_lib", "build_lib"))

    def run(self) -> None:
        # The runtime alone: what the package imports beside it is not there while it is built.
        for name, folder in (("tgraph", ROOT / "tgraph"), ("tgraph.runtime", ROOT / "runtime")):
            spec = ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations.append(str(folder))
            sys.modules[name] = module_from_spec(spec)
        from tgraph.runtime import make_prebuilt

        installed = Path(self.build_lib, "tgraph", "runtime", "prebuilt")
        folder = ROOT / "runtime" / "prebuilt" if self.editable_mode else installed
        written = make_prebuilt.write_objects(folder)
        self._places = {str(installed / each.name): str(each) for each in written}

    def get_source_files(self) -> list[str]:
        return []

    def get_outputs(self) -> list[str]:
        return list(self._places)

    def get_output_mapping(self) -> dict[str, str]:
        return self._places if self.editable_mode else {}


build.sub_commands.append(("build_objects", None))
setup(cmdclass={"build_objects": BuildObjects})
