#include "base/json.h"

#include <gtest/gtest.h>
#include <tandem/error.h>

#include <limits>

#include "base/error_test.h"

namespace tandem {
namespace {

template <class Action>
std::string json_message(const Action& action) {
  const Error error = error_of(action);
  EXPECT_EQ(error.kind(), ErrorKind::Data);
  return error.message();
}

TEST(Json, IsWrittenOnOneLineInTheOrderOfItsMembers) {
  const Json json = Json::Object{{"step", 120}, {"loss", 3.5},    {"name", "a\"b\n"},
                                 {"ok", true},  {"none", Json()}, {"ranks", Json::Array{0, 1}}};
  EXPECT_EQ(json_text(json), R"({"step":120,"loss":3.5,"name":"a\"b\n","ok":true,"none":null,"ranks":[0,1]})");
}

TEST(Json, IsReadWithItsTypesAndOrder) {
  const Json json = parse_json(R"( {"b": [1, -2.5, "x", null, true], "a": {"n": 9223372036854775807}} )", "test");
  EXPECT_EQ(json.as_object().front().first, "b");
  const Json::Array& list = json.at("b").as_array();
  EXPECT_EQ(list.at(0).as_integer(), 1);
  EXPECT_EQ(list.at(0).as_double(), 1.0);
  EXPECT_EQ(list.at(1).as_double(), -2.5);
  EXPECT_EQ(list.at(2).as_string(), "x");
  EXPECT_TRUE(list.at(3).is_null());
  EXPECT_TRUE(list.at(4).as_bool());
  EXPECT_EQ(json.at("a").at("n").as_integer(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(json.find("c"), nullptr);
}

TEST(Json, ReadsBackTheBitsOfADouble) {
  for (const double number : {0.1, 1.0 / 3.0, 1e-320, 1.7976931348623157e308, -0.0}) {
    EXPECT_EQ(parse_json(json_text(number), "test").as_double(), number);
  }
}

TEST(Json, WritesNullForNumbersItCannotHold) {
  EXPECT_EQ(json_text(std::numeric_limits<double>::quiet_NaN()), "null");
  EXPECT_EQ(json_text(std::numeric_limits<double>::infinity()), "null");
}

TEST(Json, ReplacesBytesThatAreNotUtf8) {
  EXPECT_EQ(json_text("a\xFF"
                      "b"),
            "\"a\xEF\xBF\xBD"
            "b\"");
}

TEST(Json, NamesTheFileAndPlaceOfASyntaxError) {
  const std::string message = json_message([] { parse_json("{\n  \"a\": 1,,\n}", "events.jsonl"); });
  EXPECT_TRUE(says(message, {"events.jsonl", "line 2"}));
}

TEST(Json, RefusesEmptyTextAndTrailingText) {
  EXPECT_NE(json_message([] { parse_json("", "f"); }), "");
  EXPECT_NE(json_message([] { parse_json("1 2", "f"); }), "");
}

TEST(Json, RefusesNestingThatWouldExhaustTheStack) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_TRUE(says(json_message([&] { parse_json(deep, "f"); }), {"json", "f", "200"}));
}

TEST(Json, DoesNotTakeAZeroByteForTheEnd) {
  EXPECT_TRUE(says(json_message([] { parse_json(std::string("{}\0{", 4), "f"); }), {"json", "f", "zero byte"}));
}

TEST(Json, RefusesTwoMembersOfOneName) {
  EXPECT_TRUE(says(json_message([] { parse_json(R"({"b": {"a": 1, "c": 2, "a": 1}})", "f"); }), {"json", "f", "'a'"}));
  EXPECT_EQ(parse_json(R"([{"a": 1}, {"a": 2}])", "f").as_array().at(1).at("a").as_integer(), 2);
}

TEST(Json, RefusesNumbersThatNoDoubleHolds) {
  EXPECT_TRUE(says(json_message([] { parse_json("[1e999]", "f"); }), {"number overflow"}));
}

TEST(Json, NamesBothTypesWhenTheyDiffer) {
  EXPECT_TRUE(says(json_message([] { Json("x").as_integer(); }), {"integer", "string"}));
  EXPECT_TRUE(says(json_message([] { Json(1.5).as_integer(); }), {"integer", "number"}));
  EXPECT_TRUE(says(json_message([] { Json(Json::Object{}).at("a"); }), {"'a'"}));
}

TEST(Json, IndentsByTwoSpaces) { EXPECT_EQ(json_text_indented(Json::Object{{"a", 1}}), "{\n  \"a\": 1\n}"); }

TEST(Json, OfAFileIsNamedByErrorsAboutItsValues) {
  const auto said = [](const char* text) {
    return error_of([&] { read_json_file("a.json", [&] { parse_json(text, "a.json").at("x").as_integer(); }); })
        .message();
  };
  EXPECT_TRUE(says(said(R"({"x": "y"})"), {"a.json", "integer", "string"}));
  EXPECT_TRUE(says(said("{}"), {"a.json", "'x'"}));
  EXPECT_TRUE(says(said(R"({"x": 1, "x": 1})"), {"a.json", "'x'"}));
  EXPECT_FALSE(says(said(R"({"x": 1, "x": 1})"), {"a.json", "a.json"}));
  EXPECT_EQ(said(R"({"x": 1})"), "");
}

}  // namespace
}  // namespace tandem
