"""Facts about tools/check_layers.py: each is shown red on a small tree, and green on the near miss beside it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))

import check_layers  # noqa: E402
from support import TreeTest, run_check, write_tree  # noqa: E402

# The table of the design, typed again: what each module may include besides base and itself.
DESIGN = {
    "base": "",
    "config": "",
    "comm": "",
    "data": "",
    "amp": "",
    "kernels": "",
    "text": "",
    "optim": "kernels",
    "launch": "config",
    "ddp": "comm",
    "checkpoint": "comm",
    "monitor": "comm",
    "train": "config comm data amp kernels optim ddp checkpoint monitor",
    "recipe": "train config comm data amp kernels optim ddp checkpoint monitor",
    "models": "kernels",
    "recipes": "recipe train comm models config data amp optim monitor checkpoint text",
    "cli": "config launch",
}
LOST = "is neither in a module nor beside this file; a library's header goes in <>"
FREE = "is free of torch and may not include"


class LayersTest(TreeTest):
    checker = check_layers

    def red(self, files: dict[str, str], *findings: str) -> None:
        code, lines = self.check(files)
        self.assertEqual((1, sorted(findings)), (code, sorted(lines)))

    def test_two_modules_meet_exactly_as_the_design_allows(self) -> None:
        includes = "".join(f'#include "{target}/y.h"\n' for target in DESIGN)
        findings = [
            f"{folder_of(module)}/x.cpp:{line}: {module} may not include {target} ({target}/y.h)"
            for module, allowed in DESIGN.items()
            for line, target in enumerate(DESIGN, 1)
            if target not in {"base", module, *allowed.split()}
        ]
        self.red({f"{folder_of(module)}/x.cpp": includes for module in DESIGN}, *findings)

    def test_recipes_do_not_include_each_other(self) -> None:
        self.red({"recipes/a/x.cpp": '#include "recipes/b/y.h"\n', "recipes/b/y.h": "\n"},
                 "recipes/a/x.cpp:1: recipes may not include each other (recipes/b/y.h); what two of them need belongs in src/recipe")
        self.green({"recipes/a/x.cpp": '#include "recipes/a/y.h"\n', "recipes/a/y.h": "\n"})

    def test_a_recipe_has_a_namespace_of_its_own(self) -> None:
        self.red({"recipes/a/x.cpp": "\nnamespace tandem {\n}\n"}, "recipes/a/x.cpp:2: namespace tandem: everything here is in tandem::a")
        self.red({"recipes/a/x.h": "namespace tandem::ab {\n}\n"}, "recipes/a/x.h:1: namespace tandem::ab: everything here is in tandem::a")
        self.green({"recipes/a/x.cpp": "namespace tandem::a {\nnamespace {\n}\n}\n", "src/base/x.cpp": "namespace tandem {\n}\n"})

    def test_every_kind_of_c_plus_plus_file_is_checked(self) -> None:
        for ending in ("cpp", "cc", "cu", "h", "hpp", "cuh"):
            path = f"src/base/a.{ending}"
            self.red({path: '#include "cli/x.h"\n'}, f"{path}:1: base may not include cli (cli/x.h)")

    def test_angle_brackets_do_not_hide_a_module(self) -> None:
        self.red({"src/base/a.h": "#include <train/x.h>\n"}, "src/base/a.h:1: base may not include train (train/x.h)")

    def test_a_header_may_stand_beside_the_file(self) -> None:
        self.red({"recipes/detect/main.cpp": '\n#include "config.h"\n'}, f"recipes/detect/main.cpp:2: config.h {LOST}")
        self.green({"recipes/detect/main.cpp": '\n#include "config.h"\n', "recipes/detect/config.h": "\n"})

    def test_a_header_may_be_made_by_cmake(self) -> None:
        self.red({"src/cli/a.cpp": '#include "facts.h"\n', "cmake/fact.h.in": "\n"}, f"src/cli/a.cpp:1: facts.h {LOST}")
        self.green({"src/cli/a.cpp": '#include "facts.h"\n', "cmake/facts.h.in": "\n"})

    def test_a_path_through_the_parent_folder_counts_as_the_module_it_reaches(self) -> None:
        self.red(
            {"src/comm/a.cpp": '#include "../ddp/b.h"\n', "src/ddp/b.h": "\n"},
            "src/comm/a.cpp:1: comm may not include ddp (../ddp/b.h)")
        self.green({"src/comm/a.cpp": '#include "../comm/b.h"\n', "src/comm/b.h": "\n"})

    def test_a_public_header_counts_as_its_module(self) -> None:
        self.red(
            {"src/comm/a.cpp": "#include <tandem/communicator.h>\n#include <tandem/config.h>\n"},
            "src/comm/a.cpp:2: comm may not include config (tandem/config.h)")
        self.red(
            {"include/tandem/communicator.h": '#include "tandem/run_worker.h"\n#include "tandem/error.h"\n'},
            "include/tandem/communicator.h:1: comm may not include train (tandem/run_worker.h)")

    def test_the_headers_of_base_are_open_to_all_and_those_of_config_are_not(self) -> None:
        for name in ("error", "world", "units"):
            self.green({"src/amp/a.cpp": f"#include <tandem/{name}.h>\n", f"include/tandem/{name}.h": "\n"})
        for name in ("config", "detail/field", "detail/value"):
            finding = f"src/amp/a.cpp:1: amp may not include config (tandem/{name}.h)"
            self.red({"src/amp/a.cpp": f"#include <tandem/{name}.h>\n"}, finding)

    def test_a_public_header_includes_nothing_internal(self) -> None:
        self.red(
            {"include/tandem/communicator.h": '#include <torch/types.h>\n#include "comm/work.h"\n'},
            "include/tandem/communicator.h:2: public headers and examples may not include comm/work.h, which is internal")
        self.green({"include/tandem/communicator.h": "#include <span>\n#include <torch/types.h>\n#include <tandem/world.h>\n"})

    def test_a_public_header_or_folder_that_no_table_knows_must_be_added(self) -> None:
        self.red(
            {"include/tandem/novel.h": "\n", "src/util/a.cpp": "\n", "src/train/b.cpp": "#include <tandem/novel.h>\n"},
            "include/tandem/novel.h:1: add tandem/novel.h or its folder to the tables of tools/check_layers.py",
            "src/util/a.cpp:1: add src/util/a.cpp or its folder to the tables of tools/check_layers.py")

    def test_only_examples_include_the_umbrella(self) -> None:
        umbrella = "#include <tandem/tandem.h>\n"
        self.red(
            {"src/train/a.cpp": umbrella, "models/gpt2/a.cpp": umbrella, "recipes/detect/a.cpp": umbrella},
            "models/gpt2/a.cpp:1: models may not include tandem (tandem/tandem.h)",
            "recipes/detect/a.cpp:1: recipes may not include tandem (tandem/tandem.h)",
            "src/train/a.cpp:1: train may not include tandem (tandem/tandem.h)")
        self.green({"examples/03_ddp/main.cpp": umbrella, "tests/readme/main.cpp": umbrella})
        self.green({"include/tandem/tandem.h": "#include <tandem/communicator.h>\n#include <tandem/run_worker.h>\n"})

    def test_an_example_sees_public_headers_only(self) -> None:
        self.red(
            {"examples/03_ddp/main.cpp": '#include <torch/torch.h>\n#include "ddp/reducer.h"\n'},
            "examples/03_ddp/main.cpp:2: public headers and examples may not include ddp/reducer.h, which is internal")
        self.green({"examples/a/main.cpp": '#include <torch/torch.h>\n#include "net.h"\n', "examples/a/net.h": "\n"})

    def test_tests_and_benchmarks_include_anything(self) -> None:
        text = '#include "cli/a.h"\n#include "multiproc/b.h"\n#include "train/c.h"\n#include <torch/types.h>\n'
        self.green({"tests/multiproc/a.cpp": text, "bench/b.cpp": text})

    def test_a_unit_test_obeys_its_module_and_may_include_test_support(self) -> None:
        text = '#include "multiproc/run_ranks.h"\n#include "ddp/reducer.h"\n'
        self.red({"src/comm/a_test.cpp": text}, "src/comm/a_test.cpp:2: comm may not include ddp (ddp/reducer.h)")
        self.red({"src/ddp/a.cpp": text}, f"src/ddp/a.cpp:1: multiproc/run_ranks.h {LOST}")
        self.green({"src/ddp/a_test.cpp": text})

    def test_some_modules_are_free_of_torch(self) -> None:
        for header in ("torch/types.h", "ATen/ATen.h", "c10/util/Half.h", "caffe2/core.h"):
            for module in ("base", "config", "launch", "cli", "text"):
                path = f"src/{module}/a.cpp"
                self.red({path: f"\n#include <{header}>\n"}, f"{path}:2: {path} {FREE} {header}")
            self.green({"src/comm/a.cpp": f"#include <{header}>\n"})
        self.red(
            {"include/tandem/world.h": "#include <c10/core/Device.h>\n"},
            f"include/tandem/world.h:1: include/tandem/world.h {FREE} c10/core/Device.h")

    def test_the_whole_of_torch_is_for_examples(self) -> None:
        text = "\n#include <torch/torch.h>\n"
        for path in ("src/ddp/a.cpp", "include/tandem/ddp.h", "models/gpt2/a.h", "recipes/detect/a.cpp", "src/ddp/a_test.cpp",
                     "tests/multiproc/a.h", "bench/a.cpp"):
            self.red({path: text}, f"{path}:2: torch/torch.h belongs in examples/*, tests/install/programs/*")
            self.green({path: "#include <torch/types.h>\n#include <torch/nn/module.h>\n"})
        self.green({"examples/03_ddp/a.cpp": text})

    def test_only_the_transport_itself_brings_torch_into_shared_memory(self) -> None:
        text = "#include <tandem/world.h>\n#include <tandem/communicator.h>\n#include <torch/types.h>\n"
        self.red(
            {"src/comm/shm/arena.cpp": text},
            f"src/comm/shm/arena.cpp:2: src/comm/shm/arena.cpp {FREE} tandem/communicator.h",
            f"src/comm/shm/arena.cpp:3: src/comm/shm/arena.cpp {FREE} torch/types.h")
        self.green({"src/comm/shm/shm.cpp": text, "src/comm/shm/shm_test.cpp": text})

    def test_what_writes_checkpoints_knows_no_torch(self) -> None:
        text = "#include <tandem/checkpoint_folder.h>\n#include <tandem/checkpoint.h>\n"
        self.red({"src/checkpoint/save.cpp": text},
                 f"src/checkpoint/save.cpp:2: src/checkpoint/save.cpp {FREE} tandem/checkpoint.h")
        self.red({"include/tandem/checkpoint_folder.h": "#include <torch/types.h>\n"},
                 f"include/tandem/checkpoint_folder.h:1: include/tandem/checkpoint_folder.h {FREE} torch/types.h")
        self.green({"src/checkpoint/checkpoint.cpp": text, "src/checkpoint/named_tensors.cpp": text})

    def test_each_library_has_one_home(self) -> None:
        homes = {
            "CLI/CLI.hpp": "src/config/flags.cpp",
            "nlohmann/json.hpp": "src/base/json.cpp",
            "yaml-cpp/yaml.h": "src/config/yaml.cpp",
        }
        for header, home in homes.items():
            self.green({home: f"#include <{header}>\n"})
            self.red({"src/cli/a.cpp": f"#include <{header}>\n"}, f"src/cli/a.cpp:1: {header} belongs in {home}")

    def test_some_libraries_have_none_not_even_in_tests(self) -> None:
        for header in ("fmt/format.h", "spdlog/spdlog.h", "glog/logging.h", "gloo/gloo.h", "google/protobuf/message.h"):
            self.red({"tests/a.cpp": f"#include <{header}>\n"}, f"tests/a.cpp:1: {header} belongs in no file")
        self.green({"src/base/a.cpp": "#include <format>\n"})

    def test_googletest_stays_in_tests(self) -> None:
        for header in ("gtest/gtest.h", "gmock/gmock.h"):
            self.green({path: f"#include <{header}>\n" for path in ("src/ddp/a_test.cpp", "src/ddp/a_test.h", "tests/multiproc/ranks.h")})
            self.red(
                {"src/ddp/a.cpp": f"#include <{header}>\n"},
                f"src/ddp/a.cpp:1: {header} belongs in *_test.cpp, *_test.cu, *_test.h, tests/*")

    def test_a_type_is_defined_in_one_file(self) -> None:
        for form in ("struct Sum {};", "class [[nodiscard]] Sum final : public A<B> {};", "enum class Sum : char { A };",
                     "union Sum {};", "template <class T>\nstruct Sum {};", "using Sum = int;"):
            line = form.count("\n") + 2
            text = f"namespace tandem {{\n{form}\n}}\n"
            self.red(
                {"include/tandem/communicator.h": text, "src/comm/a.cpp": text},
                f"include/tandem/communicator.h:{line}: tandem::Sum is also defined in src/comm/a.cpp",
                f"src/comm/a.cpp:{line}: tandem::Sum is also defined in include/tandem/communicator.h")
            self.green({"include/tandem/communicator.h": text, "src/comm/a.cpp": text.replace("Sum", "Mean")})

    def test_types_of_different_namespaces_are_different(self) -> None:
        text = "namespace tandem {\nstruct Sum {};\n}\n"
        self.green({"recipes/a/a.h": text.replace("tandem", "tandem::a"), "recipes/b/b.h": text.replace("tandem", "tandem::b")})
        nested = "namespace tandem {\nnamespace b { struct Sum {}; }\n}\n"
        self.red(
            {"src/base/a.h": text.replace("tandem", "tandem::b"), "src/comm/b.h": nested},
            "src/base/a.h:2: tandem::b::Sum is also defined in src/comm/b.h",
            "src/comm/b.h:2: tandem::b::Sum is also defined in src/base/a.h")

    def test_a_type_that_one_file_sees_may_recur(self) -> None:
        for text in ("namespace { struct Sum {}; }", "struct File { struct Sum {}; };", "void f() { struct Sum {}; }",
                     "struct Sum;", "struct Sum<File> {};", "struct File::Sum {};", "struct Sum f() { return {}; }",
                     "// struct Sum {};", 'auto s = "struct Sum {};";'):
            text = f"namespace tandem {{\n{text}\n}}\n"
            self.green({"src/comm/a.cpp": text.replace("File", "A"), "src/comm/b.cpp": text.replace("File", "B")})

    def test_a_helper_is_defined_in_one_file_of_its_folder(self) -> None:
        text = "namespace tandem {\nnamespace {\n\nstd::vector<int> sizes(int a) {\n  return {a};\n}\n\n}  // namespace\n}\n"
        same = "is also defined in"
        self.red({"src/comm/a.cpp": text, "src/comm/b.cpp": text},
                 f"src/comm/a.cpp:2: sizes() {same} src/comm/b.cpp, which is compiled with this file",
                 f"src/comm/b.cpp:2: sizes() {same} src/comm/a.cpp, which is compiled with this file")
        self.green({"src/comm/a.cpp": text, "src/comm/a_test.cpp": text, "src/ddp/a.cpp": text})
        self.green({path: text.replace("sizes", "visit_fields") for path in ("src/comm/a.cpp", "src/comm/b.cpp")})

    def test_examples_and_benchmarks_are_programs_of_their_own(self) -> None:
        self.green({path: "struct Sum {};\n" for path in ("examples/1/a.cpp", "examples/2/a.cpp", "bench/a.cpp", "tests/a.cpp")})

    def test_a_clean_tree_is_counted(self) -> None:
        files = {"src/base/a.h": "\n", "src/base/a.cpp": "\n", "README.md": "\n"}
        self.assertEqual((0, ["layers: 2 files, 0 findings"]), self.check(files))

    def test_a_tree_without_sources_is_an_error(self) -> None:
        self.assertEqual((2, ["layers: no source file found, so nothing was checked"]), self.check({"README.md": "\n"}))

    def test_build_and_dot_folders_are_left_alone(self) -> None:
        bad = '#include "train/step.h"\n'
        skipped = {f"{folder}/b.cpp": bad for folder in ("build", "build-asan", ".venv", ".cache")}
        self.green({"src/base/a.cpp": "\n", **skipped})

    def test_git_says_which_files_count(self) -> None:
        subprocess.run(["git", "init", "-q", str(self.root)], check=True)
        write_tree(self.root, {".gitignore": "/out/\n", "out/a.cpp": "\n", "src/base/new.cpp": '#include "cli/a.h"\n'})
        self.assertEqual((1, ["src/base/new.cpp:1: base may not include cli (cli/a.h)"]), run_check(check_layers, self.root))

    def test_it_checks_the_tree_it_is_given_or_else_the_repository_that_holds_it(self) -> None:
        write_tree(self.root, {"one/tools/x": "", "one/src/base/a.h": '#include "cli/b.h"\n', "two/src/base/a.h": "\n"})
        shutil.copy(TOOLS / "source_tree.py", self.root / "one/tools")
        script = shutil.copy(TOOLS / "check_layers.py", self.root / "one/tools")
        for args, expected in (
            ([], (1, "src/base/a.h:1: base may not include cli (cli/b.h)\n")),
            ([str(self.root / "two")], (0, "layers: 1 files, 0 findings\n")),
        ):
            done = subprocess.run([sys.executable, script, *args], cwd="/", capture_output=True, text=True)
            self.assertEqual(expected, (done.returncode, done.stdout))


def folder_of(module: str) -> str:
    return module if module in ("models", "recipes") else f"src/{module}"


if __name__ == "__main__":
    unittest.main()
