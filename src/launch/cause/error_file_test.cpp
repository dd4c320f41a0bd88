#include "launch/cause/error_file.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

constexpr const char* kRecord =
    R"({"message": {"message": "ValueError: text", "extraInfo": {"py_callstack": )"
    R"("Traceback (most recent call last):\n  File \"t.py\", line 3, in main\nValueError: text\n", "timestamp": "1700000000"}}})";

TEST(ReadErrorFile, GivesTheErrorAndItsTraceback) {
  const Evidence evidence = read_error_file(kRecord);
  EXPECT_EQ(evidence.error, "ValueError: text");
  EXPECT_EQ(evidence.traceback,
            "Traceback (most recent call last):\n  File \"t.py\", line 3, in main\nValueError: text");
}

TEST(ReadErrorFile, TakesAMessageThatIsPlainText) {
  EXPECT_EQ(read_error_file(R"({"message": "it broke\nbadly", "timestamp": 17})").error, "it broke");
  EXPECT_TRUE(read_error_file(R"({"message": {"message": "DistStoreError: wait timeout after 5000ms"}})").about_peer);
}

TEST(ReadErrorFile, FindsNothingInGarbage) {
  for (const char* text : {"", "{", "[1, 2]", "7", "{}", R"({"message": 7})", R"({"message": {"message": []}})",
                           R"({"message": {"extraInfo": 3}})", "\xff\xfe"}) {
    EXPECT_EQ(read_error_file(text).error, "") << text;
  }
}

TEST(WriteErrorFile, CopiesTheFileOfTheCauseWithItsExitCode) {
  EXPECT_EQ(write_error_file(R"({"message":{"message":"A: b","extraInfo":{"timestamp":"1"},"errorCode":9},"host":"x"})",
                             {}, 139, 5),
            R"({"host":"x","message":{"message":"A: b","extraInfo":{"timestamp":"1"},"errorCode":139}})");
  EXPECT_EQ(write_error_file(R"({"message":"plain"})", {}, 1, 5), R"({"message":"plain"})");
}

TEST(WriteErrorFile, MakesOneOfTheEvidence) {
  Evidence evidence;
  evidence.error = "ValueError: boom";
  evidence.traceback = "Traceback";
  EXPECT_EQ(write_error_file("", evidence, 3, 1'700'000'000),
            R"({"message":{"message":"ValueError: boom","extraInfo":{"py_callstack":"Traceback",)"
            R"("timestamp":"1700000000"},"errorCode":3}})");
}

}  // namespace
}  // namespace tandem
