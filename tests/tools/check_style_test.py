"""Facts about tools/check_style.py: each is shown red on a small tree, and green on the near miss beside it."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))

import check_style  # noqa: E402
from support import TreeTest, run_check, write_tree  # noqa: E402


def numbered(count: int, stem: str = "line") -> str:
    """So many statements, no two alike."""
    return "".join(f"int {stem}_{i};\n" for i in range(count))


def function(num_lines: int, head: str = "void f()", stem: str = "line") -> str:
    return f"{head} {{\n" + numbered(num_lines - 2, stem) + "}\n"


class StyleTest(TreeTest):
    checker = check_style

    def red(self, rule: str, files: dict[str, str], *places: str) -> None:
        """Exactly these places are found, all by this rule."""
        code, lines = self.check(files)
        found = [re.sub(r"^(\S+:\d+: [a-z-]+): \S.*", r"\1", line) for line in lines]
        self.assertEqual((1, sorted(f"{place}: {rule}" for place in places)), (code, sorted(found)), lines)


class SizeTest(StyleTest):
    def test_a_source_file_has_at_most_500_lines(self) -> None:
        for path in ("src/a.cpp", "src/a.cc", "bench/a.cu"):
            self.red("file-size", {path: numbered(501)}, f"{path}:501")
            self.green({path: numbered(500)})

    def test_a_header_has_at_most_250_lines(self) -> None:
        for path in ("include/tandem/a.h", "src/a.hpp", "src/a.cuh"):
            self.red("file-size", {path: numbered(251)}, f"{path}:251")
            self.green({path: numbered(250)})

    def test_a_python_file_has_at_most_500_lines(self) -> None:
        self.red("file-size", {"tools/a.py": "pass\n" * 501}, "tools/a.py:501")
        self.green({"tools/a.py": "pass\n" * 500})

    def test_a_function_has_at_most_60_lines(self) -> None:
        self.red("function-size", {"src/a.cpp": "int x;\n\n" + function(61)}, "src/a.cpp:3")
        self.green({"src/a.cpp": "int x;\n\n" + function(60)})

    def test_a_function_is_found_at_every_level(self) -> None:
        heads = (
            "static std::vector<int> f(int a, Options options = {}) noexcept",
            "template <class T, std::invocable<const T&> F>\nauto f(F&& call) -> std::vector<T>",
            "Foo::Foo(int a) : a_{a}, b_(a), c_{1, {2}}",
            "TEST(Reducer, LaunchesInOrder)",
            'extern "C" int f()',
        )
        for head in heads:
            num_head = head.count("\n")
            self.red("function-size", {"src/a.cpp": "\n" + function(61 - num_head, head)}, "src/a.cpp:2")
            self.green({"src/a.cpp": "\n" + function(60 - num_head, head)})

    def test_a_method_is_measured_without_its_class(self) -> None:
        text = "#pragma once\nnamespace tandem {{\nclass alignas(64) A final : public B<int> {{\n public:\n{}}};\n}}\n"
        one, other = function(60, " int a() const"), function(60, " int b() override", "other")
        self.red("function-size", {"src/a.h": text.format(function(61, " int a() const"))}, "src/a.h:5")
        self.green({"src/a.h": text.format(one + other)})

    def test_a_long_table_or_enumeration_is_no_function(self) -> None:
        rows = "".join(f"    {{{i}, f({i})}},\n" for i in range(70))
        self.green({"src/a.cpp": f"const Row kRows[size(3)] = {{\n{rows}}};\n"})
        self.green({"src/a.cpp": f"const auto kRows = to_array<Row>({{\n{rows}}});\n"})
        self.green({"src/a.h": "enum class Kind {\n" + "".join(f"  K{i},\n" for i in range(70)) + "};\n"})

    def test_braces_in_comments_and_literals_do_not_count(self) -> None:
        text = "void f() {\n  g('{', \"{\", R\"x({\"{)x\", 1'000);  // {\n}\n"
        self.green({"src/a.cpp": text + "void h() {\n}\n" + numbered(70)})

    def test_a_python_function_has_at_most_60_lines(self) -> None:
        self.red("function-size", {"tools/a.py": "\ndef f():\n" + "    pass\n" * 60}, "tools/a.py:2")
        self.green({"tools/a.py": "\ndef f():\n" + "    pass\n" * 59})


class NameTest(StyleTest):
    def test_a_type_is_not_named_after_a_pattern(self) -> None:
        names = (
            "GradManager RankHelper IOUtils TextUtil SignalHandler ImageProcessor FdWrapper TrainerBase CommonOptions "
            "Misc RankInfo StoreFactory RunContext BatchData StoreImpl")
        for name in names.split():
            for text in ("class {};", "struct [[nodiscard]] {};", "enum {} {{}};", "enum class {};", "using {} = int;"):
                self.red("banned-name", {"src/a.h": "\n" + text.format(name)}, "src/a.h:2")
        self.red("banned-name", {"tools/a.py": "\nclass RunHelper:\n    pass\n"}, "tools/a.py:2")

    def test_a_word_that_only_contains_a_banned_one_is_fine(self) -> None:
        self.green({"src/a.h": "struct DataLoader {};\nclass Database {};\nstruct Informed {};\nstruct utsname u;\n"})
        self.green({"src/a.h": "// struct Helper\nenum class Kind { Data, Info };\nusing tandem::Base;\n"})

    def test_a_torch_module_may_have_its_implementation(self) -> None:
        text = "\nclass {0}Impl : public torch::nn::Module {{}};\nTORCH_MODULE({0});\n"
        self.green({"models/gpt2/gpt2.h": text.format("Gpt2")})
        self.red("banned-name", {"models/gpt2/gpt2.h": text.format("LayerWrapper")}, "models/gpt2/gpt2.h:2")
        self.red("banned-name", {"models/a.h": "class FooImpl {};\nTORCH_MODULE(Food);\n"}, "models/a.h:1")

    def test_a_file_is_not_named_after_a_pattern(self) -> None:
        for name in "manager helper util utils handler processor wrapper common misc info impl factory".split():
            self.red("banned-name", {f"src/ddp/rank_{name}.h": "\n"}, f"src/ddp/rank_{name}.h:1")
        self.red("banned-name", {"src/ddp/base.cpp": "\n"}, "src/ddp/base.cpp:1")
        self.green({"src/base/error.cpp": "\n", "src/ddp/database.h": "\n", "recipes/segment/data.cpp": "\n"})


class CallTest(StyleTest):
    def stray(self, call: str, wrong: tuple[str, ...], right: tuple[str, ...]) -> None:
        for path in wrong:
            self.red("stray-call", {path: f"void f() {{\n  {call};\n}}\n"}, f"{path}:2")
        for path in right:
            self.green({path: f"void f() {{\n  {call};\n}}\n"})

    def test_the_command_line_is_read_at_the_door(self) -> None:
        wrong = ("src/ddp/a.cpp", "recipes/detect/data.cpp", "bench/a.cpp", "src/launch/plan.cpp")
        right = (
            "recipes/detect/main.cpp", "examples/01_hello_ranks/hello_ranks.cpp", "src/config/flags.cpp",
            "src/train/run_worker.cpp", "include/tandem/run_worker.h", "src/launch/ranks/spawn.cpp", "tests/cli/a.cpp",
            "src/config/flags_test.cpp",
        )
        self.stray("g(argc, argv)", wrong, right)

    def test_the_environment_is_read_in_one_file(self) -> None:
        right = ("src/base/worker_env.cpp", "tests/a.cpp", "src/base/worker_env_test.cpp")
        for call in ("std::getenv(name)", "setenv(a, b, 1)", "unsetenv(a)", "putenv(a)", "g(environ)"):
            self.stray(call, ("src/train/a.cpp", "examples/a.cpp"), right)

    def test_the_library_never_prints(self) -> None:
        wrong = ("src/monitor/a.cpp", "include/tandem/a.h", "models/a.cpp", "recipes/a.cpp")
        calls = "std::cout<<x std::cerr<<x std::clog<<x printf(x) std::fprintf(x) puts(x) fputs(x) putchar(x) perror(x)"
        for call in calls.split():
            self.stray(call, wrong, ("examples/a.cpp",))
        self.stray("std::snprintf(buffer, size, text)", (), ("src/base/a.cpp",))
        self.red("stray-call", {"src/base/a.cpp": "\n#include <iostream>\n"}, "src/base/a.cpp:2")
        self.green({"src/base/a.cpp": '// std::cout\n#include <ostream>\nauto s = "printf(x)";\n'})

    def test_the_terminal_has_few_writers(self) -> None:
        right = ("src/cli/a.cpp", "src/monitor/a.cpp", "src/launch/a.cpp", "src/train/run_worker.cpp", "tests/a.cpp")
        self.stray("write_all(STDERR_FILENO,\n text)", ("src/ddp/a.cpp", "src/train/train_step.cpp"), right)
        self.stray("::write(STDOUT_FILENO, text, size)", ("recipes/a.cpp",), right)
        self.green({"src/ddp/a.cpp": "void f() { write_all(file, text); }\nbool t = isatty(STDERR_FILENO);\n"})

    def test_the_library_never_exits(self) -> None:
        wrong = ("src/launch/ranks/spawn.cpp", "include/tandem/a.h", "models/a.cpp", "recipes/a/main.cpp")
        for call in ("exit(1)", "std::exit(1)", "::abort()", "quick_exit(1)", "_Exit(1)", "std::terminate()"):
            self.stray(call, wrong, ("tests/a.cpp",))
        self.stray("::_exit(127)", ("src/launch/launch.cpp",), ("src/launch/ranks/spawn.cpp", "src/launch/ranks/guard.cpp", "src/launch/a_test.cpp"))
        self.green({"src/comm/a.h": "void abort();\nvoid Group::abort() { group_->abort(); x.exit(); on_exit(1); }\n"})

    def test_everything_is_caught_in_few_places(self) -> None:
        for clause in ("try { g(); } catch (...) {}", "try { g(); } catch (const std::exception& e) {}"):
            right = ("src/train/run_worker.cpp", "include/tandem/run_worker.h", "src/cli/main.cpp", "tests/a.cpp")
            self.stray(clause, ("src/train/a.cpp", "recipes/a/main.cpp", "examples/a.cpp"), right)
        self.green({"src/a.cpp": "void f() { try { g(); } catch (const Error& e) {} }\nstd::exception_ptr p;\n"})

    def test_there_are_no_macros_and_no_conditional_code(self) -> None:
        for line in ("#define X 1", "#ifdef X", "#ifndef X", "#if X", "  # if defined(X)"):
            self.red("macro", {"src/a.h": f"#pragma once\n{line}\n"}, "src/a.h:2")
        self.green({"src/a.h": "#pragma once\n#if TORCH_VERSION_MINOR < 11\n#endif\n// #define X\n"})


class CommentTest(StyleTest):
    ECHO = "// Wait for each bucket\nfor (auto& bucket : buckets_) bucket.wait();\n\n"
    REASON = "// Ranks must agree on this order\nstart();\n\n"

    def test_comments_that_repeat_the_code_are_at_most_four(self) -> None:
        self.red("comment-echo", {"src/a.cpp": self.ECHO * 5}, *(f"src/a.cpp:{i}" for i in (1, 4, 7, 10, 13)))
        self.green({"src/a.cpp": self.ECHO * 4})

    def test_or_at_most_15_percent(self) -> None:
        places = (f"models/a.cpp:{i}" for i in (1, 4, 7, 10, 13, 16))
        self.red("comment-echo", {"models/a.cpp": self.ECHO * 6, "recipes/b.cpp": self.REASON * 33}, *places)
        self.green({"models/a.cpp": self.ECHO * 6, "recipes/b.cpp": self.REASON * 34})

    def test_an_echo_repeats_three_words_in_five_and_stands_alone(self) -> None:
        echo = "// bucket wait sum over everything\nbucket.wait(sum);\n\n"
        self.red("comment-echo", {"include/a.h": echo * 5}, *(f"include/a.h:{i}" for i in (1, 4, 7, 10, 13)))
        self.green({"src/a.cpp": echo.replace("sum over", "sums over") * 5})
        self.green({"src/a.cpp": ("// wait bucket\n// wait bucket\n" + "bucket.wait();\n") * 5})
        self.green({"tests/a.cpp": echo * 5})

    def test_an_echo_has_two_words_and_repeats_the_next_two_lines_of_code(self) -> None:
        echo = "// Wait, bucket\nf();\n\nbucket.wait();\n\n"
        self.red("comment-echo", {"src/a.h": echo * 5}, *(f"src/a.h:{i}" for i in (1, 6, 11, 16, 21)))
        self.green({"src/a.h": echo.replace("f();", "f();\ng();") * 5})
        self.green({"src/a.h": echo.replace("Wait, ", "") * 5})

    def test_comments_carry_no_rulers_boxes_or_step_numbers(self) -> None:
        for comment in ("// ====", "// ---- Sums ----", "/****", "//////", "// Step 1", "// step 2. sum", "// ════"):
            self.red("comment-banner", {"src/a.cpp": f"int x;\n{comment} */\n"}, "src/a.cpp:2")
        for comment in ("# ------", "########", "# Step 3"):
            self.red("comment-banner", {"CMakeLists.txt": f"project(x)\n{comment}\n"}, "CMakeLists.txt:2")
        self.green({"src/a.cpp": '// --nproc, /** or step 120 of 2000: == is no ruler\nauto s = "// =====";\n'})

    def test_unfinished_work_is_not_kept(self) -> None:
        for words in (
            "TODO: sum", "todo", "FIXME", "XXX", "HACK", "Not implemented", "a placeholder", "stub", "for now",
            "In a real run", "dummy", "hard-coded", "hardcoded",
        ):
            self.red("unfinished", {"src/a.cpp": f"int x;\n// {words}\n"}, "src/a.cpp:2")
            self.red("unfinished", {"src/a.cpp": f'int x;\nauto s = "{words}";\n'}, "src/a.cpp:2")
        for path in ("tools/a.py", "CMakeLists.txt", "Makefile", "cmake/a.cmake"):
            self.red("unfinished", {path: "\n# FIXME\n"}, f"{path}:2")
        self.green({"src/a.cpp": '// stubborn, mastodon\nint dummy = stub;\nauto s = "tandem-XXXXXX";\n'})
        self.green({"src/a.cpp": "\n", "docs/launch.md": "TODO\n", "tools/check_style.py": "# TODO\n"})

    def machine(self, words: str) -> None:
        for path in ("docs/launch.md", "Makefile", "src/a.cpp", "README.md"):
            self.red("machine-path", {"src/x.cpp": "\n", path: f"\n{words}\n"}, f"{path}:2")

    def test_an_absolute_path_is_one_that_every_machine_has(self) -> None:
        for words in ("{}/main", "cd {}", "-I{}/ann", "'{}/ann'", "`{}/ann/b`", "file://{}", "DIR={}", "({}/ann)"):
            self.machine(words.format("/" + "zork"))
            self.green({"src/a.cpp": words.format("/usr")})
        for root in ("tmp", "proc", "kaggle", "content"):
            self.green({"src/a.cpp": f"cd /{root}/input\n"})

    def test_a_path_that_begins_elsewhere_is_not_absolute(self) -> None:
        self.green({"src/a.cpp": "// src/zork/a $HOME/zork/ ${X}/zork/ and/or/zork ~/zork/x </zork/a> x.zork//b `a`/zork\n"})
        self.green({"src/a.cpp": 'auto log = folder + "/zork/a" + str(stem, "/zork");\n', "a.csv": "/" + "zork/a\n", ".gitignore": "/" + "zork/a\n"})

    def test_a_host_is_one_of_a_short_list(self) -> None:
        for words in ("https://{}/x", "{}", "http" + "://ann@{}:80/x", "git" + "://www.{}", "see {}."):
            self.machine(words.format("zork." + "org"))
            self.green({"src/a.cpp": words.format("example.com")})
        self.machine("http:" + "//zork/simple")
        self.machine("http:" + "//10.1.2.3/simple")
        self.machine("mirror." + "github.com")
        self.green({"src/a.cpp": "http://localhost:80 http://{host}/x http://$HOST ann@zork.org x.org_name\n"})


class CopyTest(StyleTest):
    BLOCK = numbered(8, "copy")

    def test_at_most_3_percent_of_the_library_is_copied(self) -> None:
        both = {"src/a.cpp": "\n" + self.BLOCK, "src/b.cpp": self.BLOCK}
        self.red("duplicate", {**both, "src/c.cpp": numbered(490)}, "src/a.cpp:2", "src/b.cpp:1")
        self.green({**both, "src/c.cpp": numbered(500), "src/d.cpp": numbered(20, "other")})

    def test_at_most_10_percent_of_the_recipes_is_copied(self) -> None:
        both = {"recipes/a/main.cpp": self.BLOCK, "recipes/b/main.cpp": "// why\n" + self.BLOCK}
        self.red("duplicate", {**both, "recipes/c.cpp": numbered(143)}, "recipes/a/main.cpp:1", "recipes/b/main.cpp:2")
        self.green({**both, "recipes/c.cpp": numbered(144)})

    def test_a_copy_has_eight_lines_of_code_in_a_row(self) -> None:
        other, first, second = numbered(60), numbered(4, "first"), numbered(4, "second")
        spaced = {"src/a.cpp": first + "\n// why\n{\n" + second, "src/b.cpp": first + "};\n" + second + other}
        self.red("duplicate", spaced, "src/a.cpp:1", "src/b.cpp:1")
        self.green({"src/a.cpp": numbered(7, "copy"), "src/b.cpp": numbered(7, "copy") + other})
        frame = '#include "x.h"\n' * 9 + "}\n" * 9
        self.green({"src/a.cpp": frame, "src/b.cpp": frame + other})

    def test_a_copy_is_named_once_with_its_other_place(self) -> None:
        block = numbered(9, "copy")
        _, lines = self.check({"src/a.cpp": "\n" + block, "src/b.cpp": block + numbered(40)})
        places = [line.partition(";")[0] for line in lines]
        self.assertEqual("src/a.cpp:2: duplicate: also stands at src/b.cpp:1", places[0])
        self.assertEqual("src/b.cpp:1: duplicate: also stands at src/a.cpp:2", places[1])
        self.assertEqual(2, len(places))

    def test_a_small_tree_may_repeat_itself(self) -> None:
        self.green({"src/a.cpp": self.BLOCK * 2 + numbered(33)})
        self.red("duplicate", {"src/a.cpp": self.BLOCK * 2 + numbered(34)}, "src/a.cpp:1", "src/a.cpp:9")


class TestsTest(StyleTest):
    def test_a_test_does_not_sleep(self) -> None:
        for call in ("this_thread::sleep_for(1s);", "sleep_until(t);", "usleep(5);", "nanosleep(t);", "::sleep(1);"):
            self.red("test-sleep", {"src/ddp/a_test.cpp": f"\n{call}\n"}, "src/ddp/a_test.cpp:2")
            self.green({"src/ddp/a_test.cpp": f"\n{call}  // poll for the port\n", "src/ddp/a.cpp": f"\n{call}\n"})
        self.red("test-sleep", {"tests/python/a.py": "\ntime.sleep(1)\n"}, "tests/python/a.py:2")
        self.green({"tests/python/a.py": "time.sleep(1)  # poll\nasleep(1)\nrun('sleep(9)')\n'''\nsleep(9)\n'''\n"})

    def test_a_test_is_not_switched_off(self) -> None:
        for line in ("TEST(A, DISABLED_Sums) {}", "void f() { EXPECT_TRUE(true); }", "void f() { ASSERT_TRUE(true); }"):
            self.red("disabled-test", {"src/a_test.cpp": f"\n{line}\n"}, "src/a_test.cpp:2")
        self.red("disabled-test", {"tests/a_test.py": "\n@unittest.skip('x')\ndef f(): pass\n"}, "tests/a_test.py:2")
        self.green({"src/a_test.cpp": "void f() { EXPECT_TRUE(true_or(x)); }\n// DISABLED_\n"})
        self.green({"tests/a_test.py": "@unittest.skipUnless(gpu, 'x')\ndef f(): pass\n"})


class FieldTest(StyleTest):
    HEADER = (
        "struct A {\n  int lr = 1;\n};\n"
        "template <class Visitor>\nvoid visit_fields(A& a, Visitor&& field) {\n"
        '  field("lr", a.lr, "learning rate");\n}\n')

    def test_an_option_is_read_somewhere(self) -> None:
        for path in ("src/optim/a.h", "recipes/detect/a.h", "include/tandem/a.h"):
            self.red("dead-field", {path: self.HEADER}, f"{path}:6")
            self.green({path: self.HEADER + "int f(const A& a) { return a.lr; }\n"})
        self.green({"src/a.h": self.HEADER, "src/b.cpp": "int f(A* a) { return a->lr == 1; }\n"})

    def test_tests_writes_and_other_lists_of_fields_do_not_read_an_option(self) -> None:
        self.red("dead-field", {"src/a.h": self.HEADER, "src/a_test.cpp": "int x = a.lr;\n"}, "src/a.h:6")
        self.red("dead-field", {"src/a.h": self.HEADER, "src/b.cpp": "void f(A& a) { a.lr = 2; }\n"}, "src/a.h:6")
        self.red("dead-field", {"src/a.h": self.HEADER, "src/b.h": self.HEADER}, "src/a.h:6", "src/b.h:6")


class ShellTest(StyleTest):
    def test_a_shell_script_stops_at_the_first_failure(self) -> None:
        self.red("shell-strict", {"tools/a.sh": "#!/bin/sh\nset -u\nmake\n"}, "tools/a.sh:1")
        self.red("shell-strict", {"tools/a.sh": "#!/bin/sh\n" + "\n" * 19 + "set -e\n"}, "tools/a.sh:1")
        self.green({"tools/a.sh": "#!/bin/sh\n" + "\n" * 18 + "set -e\n"})
        for flags in ("-e", "-eu", "-euo pipefail"):
            self.green({"tools/a.sh": f"#!/bin/bash\n# Why.\nset {flags}\nmake\n"})


class ProgramTest(StyleTest):
    def test_every_rule_is_shown_red_here(self) -> None:
        nodes = ast.walk(ast.parse(Path(__file__).read_text()))
        calls = [node for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
        shown = {call.args[0].value for call in calls if call.func.attr == "red"}
        self.assertEqual(set(check_style.RULES), shown)

    def test_a_clean_tree_is_counted(self) -> None:
        files = {"src/a.cpp": "\n", "tools/a.py": "\n", "Makefile": "\n", "README.md": "\n"}
        self.assertEqual((0, ["style: 3 files, 0 findings"]), self.check(files))

    def test_a_tree_without_sources_is_an_error(self) -> None:
        self.assertEqual((2, ["style: no source file found, so nothing was checked"]), self.check({"README.md": "\n"}))

    def test_a_binary_file_is_left_alone(self) -> None:
        self.green({"src/a.cpp": "\n", "tests/parity/a.bin": "\0 cd /" + "zork\n"})

    def test_git_says_which_files_count(self) -> None:
        subprocess.run(["git", "init", "-q", str(self.root)], check=True)
        write_tree(self.root, {".gitignore": "/ignored/\n", "ignored/a.sh": "\n", ".ci/run": "#!/bin/sh\nmake\n"})
        self.assertEqual((1, [".ci/run:1: shell-strict: no set -e near the top"]), run_check(check_style, self.root))

    def test_without_an_argument_it_checks_the_repository_that_holds_it(self) -> None:
        write_tree(self.root, {"tools/source_tree.py": "", "src/a.cpp": "#define X\n"})
        shutil.copy(TOOLS / "source_tree.py", self.root / "tools")
        script = shutil.copy(TOOLS / "check_style.py", self.root / "tools")
        done = subprocess.run([sys.executable, script], cwd="/", capture_output=True, text=True)
        self.assertEqual(1, done.returncode)
        self.assertEqual("src/a.cpp:1: macro: #define X: no macros and no conditional code\n", done.stdout)


if __name__ == "__main__":
    unittest.main()
