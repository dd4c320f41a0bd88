"""The Makefile: where the programs are, with a stand-in for CMake that makes a program in the folder it is given."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["TANDEM_SOURCE"])
CMAKE = """#!/bin/sh
case $1 in
--preset) while [ "$1" != -B ]; do shift; done; touch "$2/build.ninja" ;;
--build) mkdir -p "$2/bin"; printf '#!/bin/sh\\necho "%s: $*"\\n' "$2" > "$2/bin/tandem"; chmod +x "$2/bin/tandem" ;;
esac
"""


class Programs(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        shutil.copy(SOURCE / "Makefile", self.folder)
        self.script("tools/setup.sh", "#!/bin/sh\nmkdir -p build; touch -d @0 build/setup.env\n")
        self.script("path/cmake", CMAKE)

    def script(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o700)

    def make(self, *words: str, **variables: str) -> str:
        env = {name: value for name, value in os.environ.items() if name not in ("CXX", "MAKEFLAGS", "PRESET")}
        env |= {"PATH": f"{self.folder}/path:{env['PATH']}", **variables}
        done = subprocess.run(["make", *words], cwd=self.folder, env=env, text=True, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def folder_of_programs(self) -> str:
        said = subprocess.run([self.folder / "build/bin/tandem"], cwd=self.folder, text=True, capture_output=True).stdout
        return said.partition(":")[0]

    def test_are_where_the_pages_say_with_any_compiler_and_preset(self):
        for words, variables, folder in ((["build"], {"CXX": "g++-11"}, "build/g++-11-release"),
                                         (["build", "PRESET=dev"], {}, "build/dev"),
                                         (["build", "CXX=/usr/bin/clang++"], {}, "build/clang++-release"),
                                         (["build"], {}, "build")):  # the default one, in the place of the link
            self.make(*words, **variables)
            self.assertEqual(self.folder_of_programs(), folder)
        self.assertFalse((self.folder / "build/bin").is_symlink())
        self.assertTrue((self.folder / "build/clang++-release/bin/tandem").exists())

    def test_of_the_default_build_stay_and_it_says_where_the_others_are(self):
        self.make("build")
        said = self.make("build", CXX="g++-11")
        self.assertIn("build/g++-11-release/bin", said)
        self.assertEqual(self.folder_of_programs(), "build")
        self.assertNotIn("build/dev/bin", self.make("build", "PRESET=dev"))

    def test_under_sanitizers_are_no_last_build(self):
        self.make("build", "PRESET=asan")
        self.assertFalse((self.folder / "build/bin").exists())

    def test_of_the_demo_are_those_that_it_built(self):
        said = self.make("demo", CXX="g++-11")
        self.assertEqual(self.folder_of_programs(), "build/g++-11-release")
        self.assertRegex(said, r"(?m)^next +build/g\+\+-11-release/bin/tandem summarize train --preset small --train train\.csv\b")


if __name__ == "__main__":
    unittest.main()
