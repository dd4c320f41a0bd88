"""An installed Tandem serves programs outside the tree by find_package(tandem)."""

import os
import pathlib
import re
import shutil
import tempfile
import unittest

from consumer import PREFIX, PROJECT, SOURCE, build_program, cache_value, configure, run, tandem

PACKAGE = next(iter(PREFIX.rglob("tandemConfig.cmake")), PREFIX / "tandemConfig.cmake").parent

MAIN = """#include <tandem/tandem.h>
#include <torch/torch.h>

#include <iostream>

struct Options {
  std::int64_t scale = 1;
};

template <class Visitor>
void visit_fields(Options& o, Visitor&& field) {
  field("scale", o.scale, "factor");
}

int main(int argc, char** argv) {
  return tandem::run_worker([&](const tandem::World& world) {
    Options options;
    tandem::load_config(options, std::vector<std::string>(argv + 1, argv + argc), {.name = "consumer"});
    auto comm = tandem::Communicator::join();
    const auto value = (torch::ones({2, 2}).sum() * options.scale * (world.rank + 1)).item<std::int64_t>();
    const auto values = comm.all_gather_bytes(std::to_string(value));
    if (world.is_main()) std::cout << values[0] << ' ' << values[1] << std::endl;
  });
}
"""


class Install(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def test_a_program_outside_the_tree_builds_and_runs_on_two_ranks(self):
        program = build_program(self.folder, MAIN)
        result = tandem("run", "--device", "cpu", "-n", "2", str(program), "--scale", "10")
        self.assertEqual(result.stdout, "40 80\n", result.stderr)
        self.assertEqual(result.returncode, 0)
        wrong = tandem("run", "--device", "cpu", "-n", "2", str(program), "--scal", "10")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("error: consumer: unknown flag --scal [rank ", wrong.stderr)
        self.assertIn("hint: did you mean --scale?", wrong.stderr)
        # Libtorch exports parts of an old libstdc++; whichever comes first serves the whole program.
        needed = [line for line in run(["readelf", "-d", program]).stdout.splitlines() if "(NEEDED)" in line and "san.so" not in line]
        self.assertIn("libstdc++", needed[0])
        self.assertTrue(any("libtorch" in line for line in needed))

    def project(self, text: str = PROJECT) -> pathlib.Path:
        (self.folder / "CMakeLists.txt").write_text(text)
        (self.folder / "train.cpp").touch()
        return self.folder

    def torch_folder(self, name: str, version: str) -> pathlib.Path:
        """What looks like an unpacked libtorch."""
        header = self.folder / name / "include/torch/csrc/api/include/torch/torch.h"
        header.parent.mkdir(parents=True)
        header.touch()
        (self.folder / name / "build-version").write_text(f"{version}\n")
        return self.folder / name

    def installation_without_torch(self) -> str:
        """One that looks for its torch where there is none any more; returns the option that names it."""
        prefix = self.folder / "prefix"
        package = prefix / PACKAGE.relative_to(PREFIX)
        shutil.copytree(PACKAGE, package)
        for path in (PREFIX / "include", *PREFIX.glob("lib*/*.a")):
            (prefix / path.relative_to(PREFIX)).symlink_to(path)
        config = (package / "tandemConfig.cmake").read_text()
        candidate = re.search(r'TANDEM_TORCH_CANDIDATES "(.*)"', config)[1]
        (package / "tandemConfig.cmake").write_text(config.replace(f'"{candidate}"', '"/no/such/torch"'))
        return f"-Dtandem_DIR={package}"

    def test_another_version_of_torch_is_refused_by_name(self):
        other = self.torch_folder("torch", "2.10.7+cpu")
        result = configure(self.project(), f"-DTANDEM_TORCH={other}")
        self.assertNotEqual(result.returncode, 0)
        message = " ".join(result.stderr.split())
        self.assertIn("tandem was built for torch 2.", message)
        self.assertIn("found 2.10.7+cpu in", message)

    def test_a_torch_that_is_not_there_is_refused_with_a_hint(self):
        result = configure(self.project(), "-DTANDEM_TORCH=/no/such/folder")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("there is none in TANDEM_TORCH=/no/such/folder", " ".join(result.stderr.split()))
        self.assertIn("hint: pass -DTANDEM_TORCH=<folder>", " ".join(result.stderr.split()))

    def test_is_not_found_in_quiet_where_there_is_no_torch(self):
        """A project that can do without Tandem configures; its message says why it was not found."""
        project = self.project(PROJECT.partition("find_package")[0] + """find_package(tandem QUIET)
if(tandem_FOUND OR TARGET tandem::tandem)
  message(FATAL_ERROR "it was found")
endif()
message(NOTICE "because ${tandem_NOT_FOUND_MESSAGE}")
""")
        empty = self.folder / "bin"
        empty.mkdir()
        (empty / "python3").symlink_to("/bin/false")
        result = configure(project, self.installation_without_torch(), PATH=f"{empty}:{os.environ['PATH']}")
        self.assertEqual(result.returncode, 0, result.stderr)
        said = " ".join(result.stderr.split())
        self.assertRegex(said, r"because torch: tandem was built for torch 2\.\S+, and there is none in CMAKE_PREFIX_PATH, "
                               r"/no/such/torch, \S+/.venv and python3 hint: pass -DTANDEM_TORCH=<folder>")

    def test_finds_the_same_torch_elsewhere_when_its_own_is_gone(self):
        """The clone that it was built in may be removed: a torch of that version in CMAKE_PREFIX_PATH serves as well."""
        version = re.search(r'TANDEM_TORCH_WANTED "(.*)"', (PACKAGE / "tandemConfig.cmake").read_text())[1]
        self.torch_folder("old", "2.10.7+cpu")
        self.torch_folder("moved", version)
        project = self.project(PROJECT + 'message(NOTICE "torch is ${TANDEM_TORCH_DIR}")\n')
        result = configure(project, self.installation_without_torch(), f"-DCMAKE_PREFIX_PATH={self.folder}/old;{self.folder}/moved")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f"torch is {self.folder.resolve()}/moved\n", result.stderr)

    def test_says_at_install_which_torch_it_needs(self):
        script = (pathlib.Path(cache_value("CMAKE_CACHEFILE_DIR")) / "cmake_install.cmake").read_text()
        config = (PACKAGE / "tandemConfig.cmake").read_text()
        wanted, folder = (re.search(rf'{name} "(.*)"', config)[1] for name in ("TANDEM_TORCH_WANTED", "TANDEM_TORCH_CANDIDATES"))
        self.assertIn(f"built for torch {wanted} in {folder}", script)

    def test_warns_of_a_static_libstdcxx(self):
        for option, is_static in (("-DCMAKE_EXE_LINKER_FLAGS=-static-libstdc++", True), ("-DCMAKE_EXE_LINKER_FLAGS=-static-libgcc", False)):
            result = configure(self.project(), option)
            self.assertEqual("links libstdc++ statically" in " ".join(result.stderr.split()), is_static, result.stderr)

    def test_needs_the_packages_that_the_page_names(self):
        config = "".join(path.read_text() for path in PACKAGE.glob("*.cmake"))
        needed = set(re.findall(r"^find_dependency\((\S+)\)", config, re.M))
        page = (SOURCE / "docs/install.md").read_text()
        self.assertEqual(needed, {"Threads", "JPEG", "PNG", "yaml-cpp"})
        for package in ("libyaml-cpp-dev", "libjpeg-dev", "libpng-dev"):
            self.assertIn(f"`{package}`", page)

    def test_installs_only_public_headers_and_our_libraries(self):
        files = {str(path.relative_to(PREFIX)) for path in PREFIX.rglob("*") if path.is_file()}
        source = pathlib.Path(cache_value("CMAKE_HOME_DIRECTORY"))
        headers = {str(path.relative_to(source)) for path in (source / "include/tandem").rglob("*.h")}
        self.assertEqual({name for name in files if name.startswith("include/")}, headers)
        self.assertEqual(sorted(pathlib.Path(name).name for name in files if name.endswith(".a")),
                         ["libtandem.a", "libtandem_checkpoint_core.a", "libtandem_comm_core.a", "libtandem_core.a", "libtandem_data.a",
                          "libtandem_image.a", "libtandem_monitor.a", "libtandem_train_core.a"])
        self.assertIn("bin/tandem", files)


if __name__ == "__main__":
    unittest.main()
