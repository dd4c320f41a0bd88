#include <gtest/gtest.h>
#include <tandem/error.h>

#include <set>

namespace tandem {
namespace {

constexpr ErrorKind kKinds[] = {ErrorKind::Usage,  ErrorKind::Config,  ErrorKind::Launch, ErrorKind::Rendezvous,
                                ErrorKind::Comm,   ErrorKind::Timeout, ErrorKind::Data,   ErrorKind::Checkpoint,
                                ErrorKind::Device, ErrorKind::Internal};

TEST(Error, CarriesKindMessageAndHint) {
  try {
    fail(ErrorKind::Checkpoint, "load: step-12 is empty", "delete it");
    FAIL() << "fail() returned";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Checkpoint);
    EXPECT_EQ(error.message(), "load: step-12 is empty");
    EXPECT_EQ(error.hint(), "delete it");
    EXPECT_STREQ(error.what(), "load: step-12 is empty\nhint: delete it");
  }
}

TEST(Error, WithoutAHintIsOneLine) {
  const Error error(ErrorKind::Data, "no rows", "");
  EXPECT_STREQ(error.what(), "no rows");
  EXPECT_EQ(describe(error), "error: no rows\n");
}

TEST(Error, IsDescribedWithItsPlaceBetweenSentenceAndHint) {
  const Error error(ErrorKind::Comm, "all_reduce timed out", "look at rank 5");
  EXPECT_EQ(describe(error, "rank 3 of 8"), "error: all_reduce timed out [rank 3 of 8]\nhint: look at rank 5\n");
}

TEST(Error, IsDescribedWithoutEscapeCodesAndLinesThatPassForOurs) {
  const Error error(ErrorKind::Data, "no file \x1b[31mx\nhint: delete all", "look\nerror: y");
  EXPECT_EQ(describe(error), "error: no file x\n  hint: delete all\nhint: look\n      error: y\n");
}

TEST(Error, OfAnotherTypeIsDescribedByItsText) {
  EXPECT_EQ(describe(std::runtime_error("boom"), "rank 0 of 1"), "error: boom [rank 0 of 1]\n");
  EXPECT_EQ(exit_code(std::runtime_error("boom")), 70);
}

TEST(Error, HasNoEscapeCodesWhateverItQuotes) {
  const Error error(ErrorKind::Data, "no column 'a\x1b[2J\b!'", "did you mean '\x1b]0;c\ad'?");
  EXPECT_EQ(error.message(), "no column 'a?!'");
  EXPECT_EQ(error.hint(), "did you mean 'd'?");
  EXPECT_STREQ(error.what(), "no column 'a?!'\nhint: did you mean 'd'?");
}

TEST(Error, StaysShortAndKeepsBothEnds) {
  const Error error(ErrorKind::Data, "the field '" + std::string(10'000'000, 'x') + "' is too long", "cut it");
  EXPECT_LT(error.message().size(), 4100U);
  EXPECT_TRUE(error.message().starts_with("the field 'xxx"));
  EXPECT_TRUE(error.message().ends_with("x' is too long"));
  EXPECT_NE(error.message().find(" 9996024 bytes "), std::string::npos);
}

TEST(Error, HasTheExitCodesThatTheDocumentationLists) {
  EXPECT_EQ(exit_code(ErrorKind::Usage), 2);
  EXPECT_EQ(exit_code(ErrorKind::Config), 3);
  EXPECT_EQ(exit_code(ErrorKind::Launch), 4);
  EXPECT_EQ(exit_code(ErrorKind::Rendezvous), 5);
  EXPECT_EQ(exit_code(ErrorKind::Comm), 6);
  EXPECT_EQ(exit_code(ErrorKind::Timeout), 7);
  EXPECT_EQ(exit_code(ErrorKind::Data), 8);
  EXPECT_EQ(exit_code(ErrorKind::Checkpoint), 9);
  EXPECT_EQ(exit_code(ErrorKind::Device), 10);
  EXPECT_EQ(exit_code(ErrorKind::Internal), 70);
  EXPECT_EQ(exit_code(Error(ErrorKind::Timeout, "", "")), 7);
}

TEST(Error, HasANameAndACodeOfItsOwnForEachKind) {
  std::set<std::string_view> names;
  std::set<int> codes;
  for (const ErrorKind kind : kKinds) {
    names.insert(kind_name(kind));
    codes.insert(exit_code(kind));
  }
  EXPECT_EQ(names.size(), 10U);
  EXPECT_EQ(codes.size(), 10U);
}

}  // namespace
}  // namespace tandem
