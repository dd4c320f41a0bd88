#include <gtest/gtest.h>
#include <sys/stat.h>
#include <tandem/error.h>
#include <tandem/event_log.h>

#include <cmath>
#include <limits>

#include "base/error_test.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/temp_test.h"

namespace tandem {
namespace {

// The line without its time, whose format is checked.
std::string untimed(const std::string& line) {
  constexpr std::string_view kBegin = R"({"time":"2026-11-15T05:23:43.120Z",)";
  const std::string time = parse_json(line, "a line").at("time").as_string();
  EXPECT_EQ(time.size(), std::string_view("2026-11-15T05:23:43.120Z").size());
  EXPECT_TRUE(time.starts_with("20") && time.ends_with('Z')) << time;
  return "{" + line.substr(kBegin.size());
}

TEST(EventLog, WritesOneObjectALineInTheOrderGiven) {
  const TempFolder folder;
  const std::string path = folder.path() + "/events.jsonl";
  EventLog log(path);
  log.write(
      {{"event", "step"}, {"step", 120}, {"loss", 3.4127}, {"skipped", false}, {"tokens", std::int64_t{1} << 40}});
  log.write({{"note", "two\nlines \"quoted\""}, {"loss", NAN}});
  const std::vector<std::string> lines = read_event_lines(path);
  ASSERT_EQ(lines.size(), 2);
  EXPECT_EQ(untimed(lines[0]), R"({"event":"step","step":120,"loss":3.4127,"skipped":false,"tokens":1099511627776})");
  EXPECT_EQ(untimed(lines[1]), R"({"note":"two\nlines \"quoted\"","loss":null})");
}

TEST(EventLog, HasEachLineInTheFileAtOnce) {
  const TempFolder folder;
  const std::string path = folder.path() + "/events.jsonl";
  EventLog log(path);
  for (std::size_t step = 1; step <= 3; ++step) {
    log.write({{"step", static_cast<int>(step)}});
    EXPECT_EQ(read_event_lines(path).size(), step);
  }
}

TEST(EventLog, AppendsToAnExistingFile) {
  const TempFolder folder;
  const std::string path = folder.add("events.jsonl", "{\"step\":1}\n{\"step\":2}\n");
  EventLog(path).write({{"step", 3}});
  const std::vector<std::string> lines = read_event_lines(path);
  ASSERT_EQ(lines.size(), 3);
  EXPECT_EQ(lines[1], R"({"step":2})");
  EXPECT_EQ(untimed(lines[2]), R"({"step":3})");
}

TEST(EventLog, RemovesAPartialLine) {
  const TempFolder folder;
  const std::string torn = "{\"note\":\"" + std::string(10'000, 'x');
  for (const std::string& whole : {std::string("{\"step\":1}\n"), std::string()}) {
    const std::string path = folder.add("events.jsonl", whole + torn);
    const EventLog log(path);
    EXPECT_EQ(read_file(path), whole);
  }
}

TEST(EventLog, IsReadWhileALineIsBeingWritten) {
  const TempFolder folder;
  EXPECT_EQ(read_event_lines(folder.add("events.jsonl", "{\"step\":1}\n{\"st")),
            (std::vector<std::string>{R"({"step":1})"}));
  EXPECT_TRUE(read_event_lines(folder.add("events.jsonl", "")).empty());
}

TEST(EventLog, SaysWhereItCannotWrite) {
  EXPECT_TRUE(says(error_of([] { EventLog("/proc/no/events.jsonl"); }).message(),
                   {"/proc/no/events.jsonl", "No such file or directory"}));
  EventLog full("/dev/full");
  EXPECT_TRUE(says(error_of([&] { full.write({{"step", 1}}); }).message(), {"/dev/full", "No space left on device"}));
}

}  // namespace
}  // namespace tandem
