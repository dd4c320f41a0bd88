"""An installed Tandem serves programs outside the tree by find_package(tandem)."""

import pathlib
import tempfile
import unittest

from consumer import PREFIX, build_program, cache_value, configure, run, tandem

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
        needed = [line for line in run(["readelf", "-d", program]).stdout.splitlines() if "(NEEDED)" in line]
        self.assertIn("libstdc++", needed[0])
        self.assertTrue(any("libtorch" in line for line in needed))

    def test_another_version_of_torch_is_refused_by_name(self):
        header = self.folder / "torch/include/torch/csrc/api/include/torch/torch.h"
        header.parent.mkdir(parents=True)
        header.touch()
        (self.folder / "torch/version.py").write_text("__version__ = '2.10.7'\n")
        result = configure(self.folder, f"-DTANDEM_TORCH={self.folder}/torch")
        self.assertNotEqual(result.returncode, 0)
        message = " ".join(result.stderr.split())
        self.assertIn("tandem was built for torch 2.", message)
        self.assertIn("found 2.10.7 in", message)

    def test_a_torch_that_is_not_there_is_refused_with_a_hint(self):
        result = configure(self.folder, "-DTANDEM_TORCH=/no/such/folder")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("there is none in TANDEM_TORCH=/no/such/folder", " ".join(result.stderr.split()))

    def test_installs_only_public_headers_and_our_libraries(self):
        files = {str(path.relative_to(PREFIX)) for path in PREFIX.rglob("*") if path.is_file()}
        source = pathlib.Path(cache_value("CMAKE_HOME_DIRECTORY"))
        headers = {str(path.relative_to(source)) for path in (source / "include/tandem").rglob("*.h")}
        self.assertEqual({name for name in files if name.startswith("include/")}, headers)
        self.assertEqual(sorted(pathlib.Path(name).name for name in files if name.endswith(".a")),
                         ["libtandem.a", "libtandem_checkpoint_core.a", "libtandem_comm_core.a", "libtandem_core.a", "libtandem_data.a",
                          "libtandem_monitor.a", "libtandem_train_core.a"])
        self.assertIn("bin/tandem", files)


if __name__ == "__main__":
    unittest.main()
