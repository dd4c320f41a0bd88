#include <gtest/gtest.h>
#include <tandem/units.h>

namespace tandem {
namespace {

using namespace std::chrono_literals;

TEST(Duration, IsReadWithUnitsAlone_Together_AndWithDecimals) {
  EXPECT_EQ(parse_duration("90s"), 90s);
  EXPECT_EQ(parse_duration("11h30m"), 11h + 30min);
  EXPECT_EQ(parse_duration("1.5h"), 90min);
  EXPECT_EQ(parse_duration("250ms"), 250ms);
  EXPECT_EQ(parse_duration("1d"), 24h);
  EXPECT_EQ(parse_duration("2s500us"), 2s + 500us);
  EXPECT_EQ(parse_duration("-5m"), -5min);
}

TEST(Duration, WithoutAUnitIsSeconds) {
  EXPECT_EQ(parse_duration("30"), 30s);
  EXPECT_EQ(parse_duration("0.1"), 100ms);
  EXPECT_EQ(parse_duration("0"), 0s);
}

TEST(Duration, IsRefusedWhenItIsNotOne) {
  for (const char* text : {"", "-", "s", "5x", "1h30", "1.h", ".5h", "1..5h", "5 s", "1e3s", "0.5ns", "99999999999h"}) {
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
  }
}

TEST(Duration, IsWrittenInTheLargestUnits) {
  EXPECT_EQ(duration_text(11h + 30min), "11h30m");
  EXPECT_EQ(duration_text(90s), "1m30s");
  EXPECT_EQ(duration_text(36h), "36h");
  EXPECT_EQ(duration_text(1500ms), "1s500ms");
  EXPECT_EQ(duration_text(0s), "0s");
  EXPECT_EQ(duration_text(-90s), "-1m30s");
}

TEST(Bytes, AreReadInDecimalAndBinaryUnits) {
  EXPECT_EQ(parse_bytes("18GB")->count, 18'000'000'000U);
  EXPECT_EQ(parse_bytes("25MiB")->count, 26'214'400U);
  EXPECT_EQ(parse_bytes("1.5kB")->count, 1500U);
  EXPECT_EQ(parse_bytes("0.5KiB")->count, 512U);
  EXPECT_EQ(parse_bytes("4096")->count, 4096U);
  EXPECT_EQ(parse_bytes("7B")->count, 7U);
}

TEST(Bytes, AreRefusedWhereTheUnitIsMissingOrAmbiguous) {
  for (const char* text : {"", "GB", "18G", "18gb", "18 GB", "-1GB", "0.5B", "1GB2MB", "99999999TiB"}) {
    EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
  }
}

TEST(Bytes, AreWrittenInTheLargestUnitThatDivides) {
  EXPECT_EQ(bytes_text({18'000'000'000}), "18GB");
  EXPECT_EQ(bytes_text({26'214'400}), "25MiB");
  EXPECT_EQ(bytes_text({4097}), "4097B");
  EXPECT_EQ(bytes_text({0}), "0B");
}

}  // namespace
}  // namespace tandem
