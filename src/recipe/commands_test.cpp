#include "recipe/commands.h"

#include <gtest/gtest.h>

#include "base/error_test.h"

namespace tandem {
namespace {

const CommandTable kTable{
    .name = "tandem bake",
    .about = "Bakes.",
    .example = "tandem bake cake",
    .commands = {{"cake", "bake a cake",
                  [](const auto& words, std::size_t place, const auto&) { return std::ssize(words) * 10 + place; }},
                 {.name = "baguette",
                  .about = "bake a baguette",
                  .run = {},
                  .examples = {"tandem bake baguette --long oven"},
                  .arguments = "oven"}}};

TEST(Commands, AreFoundByName) {
  ASSERT_NE(find_command(kTable, "cake"), nullptr);
  EXPECT_EQ(find_command(kTable, "cake")->run({"a", "b", "c"}, 2, {}), 32);
  EXPECT_EQ(find_command(kTable, "cak"), nullptr);
}

TEST(Commands, HaveAHelpOfTheirOwn) {
  const ProgramText cake = program_text(kTable, kTable.commands[0]);
  EXPECT_EQ(cake.name, "tandem bake cake");
  EXPECT_EQ(cake.about, "Bake a cake.");
  EXPECT_FALSE(cake.flags_anywhere);
  const ProgramText baguette = program_text(kTable, kTable.commands[1]);
  EXPECT_EQ(baguette.arguments, "oven");
  EXPECT_EQ(baguette.examples, (std::vector<std::string>{"tandem bake baguette --long oven"}));
  EXPECT_TRUE(baguette.flags_anywhere);
}

TEST(Commands, AreListedByTheHelp) {
  for (const char* word : {"--help", "-h", "help"}) {
    EXPECT_EQ(help_or_fail(kTable, word),
              "usage: tandem bake COMMAND [flags]\n\nBakes.\n\ncommands:\n"
              "  cake      bake a cake\n"
              "  baguette  bake a baguette\n\n"
              "example:\n  tandem bake cake\n\n`tandem bake COMMAND --help` lists the flags of a command.\n");
  }
}

TEST(Commands, ThatAreUnknownGetTheNearestOne) {
  const Error near = error_of([] { help_or_fail(kTable, "bagette"); });
  EXPECT_EQ(near.kind(), ErrorKind::Usage);
  EXPECT_NE(near.message().find("'bagette'"), std::string::npos);
  EXPECT_NE(near.hint().find("`tandem bake baguette`"), std::string::npos);
  EXPECT_NE(error_of([] { help_or_fail(kTable, "xyzzy"); }).hint().find("`tandem bake --help`"), std::string::npos);
}

}  // namespace
}  // namespace tandem
