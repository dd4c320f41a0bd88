#include "checkpoint/safetensors.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>

#include "base/error_test.h"
#include "base/temp_test.h"
#include "base/text.h"

namespace tandem {
namespace {

// A file with this header and data.
std::string file_of(const std::string& header, const std::string& data = "") {
  std::string file(8, '\0');
  const std::uint64_t length = header.size();
  std::memcpy(file.data(), &length, sizeof(length));
  return file + header + data;
}

SafetensorsHeader open_file(const std::string& bytes) {
  const TempFile file(bytes, ".safetensors");
  return SafetensorsFile(file.path()).header();
}

// The error message for a file of these bytes, without the file's name.
std::string refusal_of(const std::string& bytes) {
  const TempFile file(bytes, ".safetensors");
  const Error error = error_of([&] { SafetensorsFile opened(file.path()); });
  EXPECT_EQ(error.kind(), ErrorKind::Checkpoint) << error.what();
  EXPECT_NE(error.hint(), "");
  const std::string start = str("safetensors: ", file.path(), ": ");
  EXPECT_TRUE(error.message().starts_with(start)) << error.what();
  return error.message().substr(std::min(start.size(), error.message().size()));
}

std::string tensor(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return str(R"({"dtype":")", dtype, R"(","shape":)", shape, R"(,"data_offsets":)", offsets, '}');
}

std::string refusal_of_tensor(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return refusal_of(file_of(str(R"({"w":)", tensor(dtype, shape, offsets), '}'), std::string(8, 'x')));
}

TEST(Safetensors, IsReadInTheOrderOfItsBytes) {
  const auto header = open_file(file_of(str(R"({"b":)", tensor("F32", "[]", "[4,8]"), R"(,"a":)",
                                            tensor("U8", "[2,2]", "[0,4]"), R"(,"__metadata__":{"format":"pt"}}  )"),
                                        "12345678"));
  ASSERT_EQ(header.tensors.size(), 2U);
  EXPECT_EQ(header.tensors[0].name, "a");
  EXPECT_EQ(header.tensors[0].shape, (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(header.tensors[1].name, "b");
  EXPECT_EQ(header.tensors[1].dtype, "F32");
  EXPECT_TRUE(header.tensors[1].shape.empty());
  EXPECT_EQ(header.metadata, (Metadata{{"format", "pt"}}));
}

TEST(Safetensors, MayHoldNothingAndTensorsWithoutElements) {
  EXPECT_TRUE(open_file(file_of("{}")).tensors.empty());
  EXPECT_EQ(open_file(file_of(str(R"({"a":)", tensor("F64", "[3,0]", "[0,0]"), '}'))).tensors[0].shape,
            (std::vector<std::int64_t>{3, 0}));
}

TEST(Safetensors, PacksTypesThatAreSmallerThanAByte) {
  EXPECT_EQ(open_file(file_of(str(R"({"a":)", tensor("F4", "[6]", "[0,3]"), '}'), "abc")).tensors[0].end, 3U);
  EXPECT_TRUE(says(refusal_of_tensor("F4", "[3]", "[0,8]"), {"'w'", "F4", "[3]"}));
}

TEST(Safetensors, RefusesAFileThatIsTooShortForItsHeader) {
  EXPECT_TRUE(says(refusal_of(""), {"0", "8"}));
  EXPECT_TRUE(says(refusal_of("1234567"), {"7", "8"}));
  EXPECT_TRUE(says(refusal_of(file_of("{}").substr(0, 9)), {"2", "9"}));
  EXPECT_TRUE(says(refusal_of(std::string("\x01\xE1\xF5\x05\0\0\0\0{}", 10)), {"100000001", "100000000"}));
  EXPECT_TRUE(says(refusal_of(std::string(8, '\xFF') + "{}"), {"18446744073709551615", "100000000"}));
}

TEST(Safetensors, RefusesAHeaderThatIsNotAJsonObject) {
  EXPECT_TRUE(says(refusal_of(file_of("")), {"'{'"}));
  EXPECT_TRUE(says(refusal_of(file_of(" {}")), {"'{'"}));
  EXPECT_TRUE(says(refusal_of(file_of("[]")), {"'{'"}));
  EXPECT_NE(refusal_of(file_of("{")).find("json: the header: "), std::string::npos);
  EXPECT_NE(refusal_of(file_of("{}x")).find("json: the header: "), std::string::npos);
  EXPECT_TRUE(says(refusal_of(file_of(std::string("{}\0", 3))), {"json", "zero byte"}));
  EXPECT_NE(refusal_of(file_of("{\"\xFF\":1}")).find("ill-formed UTF-8"), std::string::npos);
}

TEST(Safetensors, RefusesTwoTensorsOfOneName) {
  const std::string one = tensor("U8", "[4]", "[0,4]");
  EXPECT_TRUE(says(refusal_of(file_of(str(R"({"w":)", one, R"(,"w":)", one, '}'), "1234")), {"json", "'w'"}));
}

TEST(Safetensors, RefusesMetadataThatIsNotText) {
  EXPECT_TRUE(says(refusal_of(file_of(R"({"__metadata__":{"step":3}})")), {"'__metadata__'", "string", "integer"}));
  EXPECT_TRUE(says(refusal_of(file_of(R"({"__metadata__":[]})")), {"'__metadata__'", "object", "array"}));
}

TEST(Safetensors, RefusesTypesItDoesNotKnow) {
  EXPECT_TRUE(says(refusal_of_tensor("F31", "[2]", "[0,8]"), {"'w'", "'F31'"}));
}

TEST(Safetensors, RefusesInvalidShapes) {
  EXPECT_TRUE(says(refusal_of_tensor("F32", "[-2]", "[0,8]"), {"'w'", "-2"}));
  EXPECT_TRUE(says(refusal_of_tensor("F32", "[2.0]", "[0,8]"), {"'w'", "integer", "number"}));
  EXPECT_TRUE(says(refusal_of_tensor("F32", "[18446744073709551616]", "[0,8]"), {"'w'", "integer", "number"}));
  EXPECT_TRUE(says(refusal_of_tensor("F32", "2", "[0,8]"), {"'w'", "array", "integer"}));
}

TEST(Safetensors, RefusesCountsThatOverflow) {
  // 2^32 * 2^32 is 0 in 64 bits; 2^61 elements of 64 bits are 2^67 bits; an empty tensor has strides too.
  EXPECT_TRUE(
      says(refusal_of_tensor("U8", "[4294967296,4294967296]", "[0,0]"), {"'w'", "U8", "[4294967296, 4294967296]"}));
  EXPECT_TRUE(
      says(refusal_of_tensor("F64", "[2305843009213693952]", "[0,0]"), {"'w'", "F64", "[2305843009213693952]"}));
  EXPECT_TRUE(says(refusal_of_tensor("U8", "[0,4294967296,4294967296]", "[0,0]"),
                   {"'w'", "U8", "[0, 4294967296, 4294967296]"}));
}

TEST(Safetensors, RefusesOffsetsThatDoNotFitTheShape) {
  EXPECT_TRUE(says(refusal_of_tensor("F32", "[3]", "[0,8]"), {"'w'", "F32", "[3]", "12", "8"}));
  EXPECT_TRUE(says(refusal_of_tensor("F32", "[1]", "[0,8]"), {"'w'", "F32", "[1]", "4", "8"}));
  EXPECT_TRUE(says(refusal_of_tensor("F32", "[2]", "[8,0]"), {"'w'", "0", "8"}));
  EXPECT_TRUE(says(refusal_of_tensor("F32", "[2]", "[0]"), {"'w'", "1", "data_offsets", "2"}));
  EXPECT_TRUE(says(refusal_of_tensor("F32", "[2]", "[-8,0]"), {"'w'", "-8"}));
  EXPECT_TRUE(
      says(refusal_of(file_of(R"({"w":{"dtype":"F32","shape":[2]}})", "12345678")), {"'w'", "json", "'data_offsets'"}));
}

TEST(Safetensors, RefusesBytesThatBelongToNoTensorOrToTwo) {
  const auto two = [](const std::string& second, const std::string& data) {
    return file_of(str(R"({"a":)", tensor("U8", "[4]", "[0,4]"), R"(,"b":)", tensor("U8", "[4]", second), '}'), data);
  };
  EXPECT_EQ(open_file(two("[4,8]", "12345678")).tensors.size(), 2U);
  EXPECT_TRUE(says(refusal_of(two("[5,9]", "123456789")), {"'b'", "5", "4"}));
  EXPECT_TRUE(says(refusal_of(two("[3,7]", "1234567")), {"'b'", "3", "4"}));
  EXPECT_TRUE(says(refusal_of(two("[0,4]", "1234")), {"'b'", "0", "4"}));
  EXPECT_TRUE(says(refusal_of(two("[4,8]", "1234567")), {"8", "7"}));
  EXPECT_TRUE(says(refusal_of(two("[4,8]", "123456789")), {"8", "9"}));
  EXPECT_TRUE(says(refusal_of(file_of("{}", "x")), {"0", "1"}));
}

TEST(Safetensors, RefusesMoreDimensionsThanTorchHas) {
  std::string ones = "1";
  for (int i = 1; i < 64; ++i) ones += ",1";
  EXPECT_EQ(
      open_file(file_of(str(R"({"w":)", tensor("U8", str('[', ones, ']'), "[0,1]"), '}'), "x")).tensors[0].shape.size(),
      64U);
  EXPECT_TRUE(says(refusal_of_tensor("U8", str('[', ones, ",8]"), "[0,8]"), {"'w'", "65", "64"}));
}

TEST(Safetensors, SaysThatAFileIsMissing) {
  const Error error = error_of([] { SafetensorsFile("no/such.safetensors"); });
  EXPECT_EQ(error.kind(), ErrorKind::Checkpoint);
  EXPECT_TRUE(says(error.message(), {"no/such.safetensors", "No such file or directory"}));
  EXPECT_EQ(error_of([] { SafetensorsFile("/"); }).kind(), ErrorKind::Checkpoint);
  const TempFolder folder;
  const std::string fifo = folder.path() + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_TRUE(says(error_of([&] { SafetensorsFile opened(fifo); }).message(), {fifo}));  // and does not wait
}

TEST(Safetensors, KnowsOtherNamesByTheMetadata) {
  const std::string header = str(R"({"__metadata__":{"format":"wte","head":"wte","note":"x","wte":"wte"},"wte":)",
                                 tensor("U8", "[1]", "[0,1]"), '}');
  EXPECT_EQ(aliases(open_file(file_of(header, "x"))), (Metadata{{"head", "wte"}}));
}

// Worked out by hand from the reference: wide types first, then by name; the header ends at a multiple of 8.
TEST(Safetensors, IsWrittenAsTheReferenceDoes) {
  const FileContent content = safetensors_content({{.name = "z", .dtype = "U8", .shape = {3}, .bytes = "zzz"},
                                                   {.name = "b", .dtype = "F32", .shape = {}, .bytes = "bbbb"},
                                                   {.name = "a\"", .dtype = "F32", .shape = {1, 1}, .bytes = "aaaa"}},
                                                  {{"format", "pt"}});
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"a\"":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]},)"
      R"("b":{"dtype":"F32","shape":[],"data_offsets":[4,8]},"z":{"dtype":"U8","shape":[3],"data_offsets":[8,11]}})";
  EXPECT_EQ(content.text, file_of(header + std::string(8 - header.size() % 8, ' ')));
  EXPECT_EQ(content.bytes, (std::vector<std::string_view>{"aaaa", "bbbb", "zzz"}));
  EXPECT_EQ(content.size(), content.text.size() + 11);
}

TEST(Safetensors, IsRefusedHoweverMuchOfItIsMissing) {
  const FileContent content =
      safetensors_content({{.name = "w", .dtype = "I64", .shape = {3}, .bytes = "123456781234567812345678"}}, {});
  const std::string whole = content.text + std::string(content.bytes[0]);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_NE(refusal_of(whole.substr(0, length)), "") << length;
  }
  EXPECT_EQ(open_file(whole).tensors[0].name, "w");
}

}  // namespace
}  // namespace tandem
