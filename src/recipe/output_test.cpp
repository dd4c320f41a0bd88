#include "recipe/output.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error_test.h"
#include "base/temp_test.h"
#include "recipe/content_key.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

TEST(Output, IsRefusedBeforeTheWorkIfItCannotBeWritten) {
  const TempFolder folder;
  const fs::path input = folder.add("in.csv", "a");
  check_output(fs::path(folder.path()) / "out.csv", input);
  check_output(fs::path(folder.path()) / "out.csv", "");
  EXPECT_EQ(error_of([&] { check_output("", input); }).kind(), ErrorKind::Config);
  EXPECT_EQ(error_of([&] { check_output(fs::path(folder.path()) / "." / "in.csv", input); }).kind(), ErrorKind::Config);
  for (const char* name : {"no/such.csv", "in.csv/x.csv", "."}) {
    const fs::path output = fs::path(folder.path()) / name;
    const Error error = error_of([&] { check_output(output, ""); });
    EXPECT_EQ(error.kind(), ErrorKind::Data) << name;
    EXPECT_NE(error.message().find(output.native()), std::string::npos) << error.message();
  }
}

TEST(NewFolder, IsThereWholeOrNotAtAll) {
  const TempFolder above;
  const fs::path folder = fs::path(above.path()) / "new";
  EXPECT_EQ(error_of([&] {
              make_new_folder(folder, [&](const fs::path& temporary) {
                EXPECT_NE(temporary, folder);
                std::ofstream(temporary / "half") << "a";
                fail(ErrorKind::Checkpoint, "cannot write " + (temporary / "half").native(), "hint");
              });
            }).message(),
            "cannot write " + (folder / "half").native());
  EXPECT_TRUE(fs::is_empty(above.path()));
  make_new_folder(fs::path(folder.native() + "/"), [](const fs::path& temporary) { std::ofstream(temporary / "a"); });
  EXPECT_TRUE(fs::exists(folder / "a"));
  EXPECT_EQ(std::distance(fs::directory_iterator(above.path()), {}), 1);
}

TEST(NewFolder, BelowAFileIsAnError) {
  const TempFile file("");
  const Error error = error_of([&] { make_new_folder(fs::path(file.path()) / "new", [](const fs::path&) {}); });
  EXPECT_EQ(error.kind(), ErrorKind::Data);
}

TEST(ContentKey, DiffersWithTheContent) {
  EXPECT_EQ(content_key(""), "14695981039346656037-0");
  EXPECT_EQ(content_key("a").substr(0, 20), "12638187200555641996");  // FNV-1a, 64 bits
  EXPECT_NE(content_key("ab"), content_key("ba"));
}

}  // namespace
}  // namespace tandem
