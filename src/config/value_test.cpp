#include <gtest/gtest.h>
#include <tandem/detail/value.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tandem {
namespace {

using namespace std::chrono_literals;

template <class Value>
std::optional<Value> read(const char* text) {
  return ScalarFormat<Value>::read(text);
}

TEST(Value, ReadsBoolsAsYamlWritesThem) {
  for (const char* yes : {"true", "yes", "on", "1"}) EXPECT_EQ(read<bool>(yes), true) << yes;
  for (const char* no : {"false", "no", "off", "0"}) EXPECT_EQ(read<bool>(no), false) << no;
  for (const char* neither : {"", "True!", "2", "maybe"}) EXPECT_EQ(read<bool>(neither), std::nullopt) << neither;
}

TEST(Value, RefusesIntegersThatDoNotFitTheirType) {
  EXPECT_EQ(read<std::int8_t>("-128"), std::int8_t{-128});
  EXPECT_EQ(read<std::int8_t>("128"), std::nullopt);
  EXPECT_EQ(read<std::uint8_t>("255"), std::uint8_t{255});
  EXPECT_EQ(read<std::uint32_t>("-1"), std::nullopt);
  EXPECT_EQ(read<std::uint64_t>("18446744073709551615"), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(read<std::int64_t>("9223372036854775808"), std::nullopt);
  EXPECT_EQ(read<int>("1.0"), std::nullopt);
  EXPECT_EQ(read<int>("0x10"), std::nullopt);
}

TEST(Value, SaysWhichIntegersAreAllowed) {
  EXPECT_EQ(ScalarFormat<std::int8_t>::allowed(), "an integer from -128 to 127");
  EXPECT_EQ(ScalarFormat<std::int64_t>::allowed(), "a 64-bit integer");
  EXPECT_EQ(ScalarFormat<std::uint64_t>::allowed(), "a non-negative 64-bit integer");
}

TEST(Value, ReadsFloatsInScientificAndYamlNotation) {
  EXPECT_EQ(read<double>("3e-4"), 0.0003);
  EXPECT_EQ(read<double>("-.inf"), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(read<float>(".nan").value()));
  EXPECT_EQ(read<double>("1e400"), std::nullopt);
  EXPECT_EQ(read<double>("fast"), std::nullopt);
  EXPECT_EQ(read<double>("1,5"), std::nullopt);
}

TEST(Value, WritesFloatsSoThatTheirBitsComeBack) {
  for (const double value : {0.1, -0.0, 5e-324, 1.0 / 3.0, 1.7976931348623157e308, -HUGE_VAL}) {
    const std::string text = ScalarFormat<double>::write(value);
    EXPECT_EQ(std::bit_cast<std::uint64_t>(read<double>(text.c_str()).value()), std::bit_cast<std::uint64_t>(value))
        << text;
  }
  EXPECT_EQ(ScalarFormat<float>::write(0.1F), "0.1");
  EXPECT_EQ(ScalarFormat<double>::write(NAN), ".nan");
}

TEST(Value, RefusesTimesThatAreNotWholeTicks) {
  EXPECT_EQ(read<std::chrono::seconds>("11h30m"), 41400s);
  EXPECT_EQ(read<std::chrono::seconds>("1500ms"), std::nullopt);
  EXPECT_EQ(read<std::chrono::milliseconds>("1.5s"), 1500ms);
}

TEST(Value, RefusesTextThatNoYamlFileCanHold) {
  EXPECT_EQ(read<std::string>("\xFF"), std::nullopt);
  EXPECT_EQ(ScalarFormat<std::string>::read(std::string_view("a\0b", 3)), std::nullopt);
  EXPECT_EQ(read<std::filesystem::path>("a b/\xE4\xB8\xAD"), "a b/\xE4\xB8\xAD");
}

TEST(Value, ReadsAListOnlyIfEveryItemFits) {
  using List = ValueFormat<std::vector<int>>;
  EXPECT_EQ(List::read(std::vector<std::string>{"1", "2"}), (std::vector<int>{1, 2}));
  EXPECT_EQ(List::read(std::vector<std::string>{"1", "x"}), std::nullopt);
  EXPECT_EQ(List::read(Written("1")), std::nullopt);
}

TEST(Value, TellsAMissingOptionalFromABadOne) {
  using Optional = ValueFormat<std::optional<int>>;
  EXPECT_EQ(Optional::read(Written()).value(), std::nullopt);
  EXPECT_EQ(Optional::read(Written("7")).value(), 7);
  EXPECT_FALSE(Optional::read(Written("x")).has_value());
  EXPECT_EQ(Optional::write(std::nullopt), Written());
}

}  // namespace
}  // namespace tandem
