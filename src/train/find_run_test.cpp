#include "train/find_run.h"

#include <gtest/gtest.h>

#include "base/temp_test.h"
#include "train/typed_command.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

TEST(Run, IsThatOfAFolderOfItsCheckpointsAndOfOneOfThem) {
  for (const char* from : {"/a/run", "/a/run/", "/a/./run", "/a/run/checkpoints", "/a/run/checkpoints/",
                           "/a/run/checkpoints/step-00000002", "/a/run/checkpoints/step-00000002/"}) {
    EXPECT_EQ(run_of(from), "/a/run") << from;
  }
  EXPECT_EQ(run_of("run"), fs::current_path() / "run");
  EXPECT_EQ(run_of("/a/run/exports/hf"), "/a/run/exports/hf");
}

TEST(Run, IsTheLatestOfAFolderOfRuns) {
  const TempFolder folder;
  folder.add("runs/old/config.yaml");
  folder.add("runs/new/config.yaml");
  const fs::path runs = fs::path(folder.path()) / "runs";
  EXPECT_EQ(run_of(runs), runs);
  fs::create_directory_symlink("old", runs / "latest");
  EXPECT_EQ(run_of(runs / ""), runs / "latest");
  EXPECT_EQ(run_of(runs / "new"), runs / "new");
  folder.add("runs/new/latest/events.jsonl");  // a run may have a folder of that name
  EXPECT_EQ(run_of(runs / "new"), runs / "new");
}

TEST(Path, IsTypedRelativeBelowTheCurrentFolder) {
  EXPECT_EQ(typed_path(fs::current_path() / "runs" / "a b"), "'runs/a b'");
  EXPECT_EQ(typed_path("/no/where"), "/no/where");
}

TEST(Program, IsTypedAsACommandOfTandemBesideIt) {
  const TempFolder folder;
  const fs::path program = folder.add("bin/tandem-toy", "", 0700);
  const std::string bin = (fs::path(folder.path()) / "bin").native();
  EXPECT_EQ(typed_program(program), program);
  folder.add("bin/tandem", "", 0700);
  {
    const TempVariable path("PATH", "/nowhere");
    EXPECT_EQ(typed_program(program), bin + "/tandem toy");
  }
  const TempVariable path("PATH", bin.c_str());
  EXPECT_EQ(typed_program(program), "tandem toy");
  EXPECT_EQ(typed_program(fs::current_path() / "train"), "./train");
}

}  // namespace
}  // namespace tandem
