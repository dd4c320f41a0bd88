#include <gtest/gtest.h>
#include <tandem/checkpoint.h>
#include <tandem/error.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <filesystem>

#include "base/error_test.h"
#include "base/fd.h"
#include "base/temp_test.h"
#include "base/text.h"
#include "checkpoint/safetensors.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using torch::Tensor;

// The same type, shape and bits, NaNs included.
bool is_same(const Tensor& one, const Tensor& other) {
  const auto bits = [](const Tensor& tensor) { return tensor.contiguous().flatten().view(torch::kByte); };
  if (one.scalar_type() != other.scalar_type() || one.sizes() != other.sizes()) return false;
  return one.numel() == 0 || torch::equal(bits(one), bits(other));
}

NamedTensors save_and_load(const NamedTensors& tensors) {
  const TempFolder temp;
  const fs::path path = fs::path(temp.path()) / "a.safetensors";
  save_safetensors(path, tensors);
  return load_safetensors(path);
}

TEST(SafetensorsTensors, ComeBackWithTheirBits) {
  const auto numbers = torch::arange(-3, 3);
  NamedTensors tensors = {{"empty", torch::empty({2, 0, 3})},
                          {"scalar", torch::tensor(0.1, torch::kDouble)},
                          {"nan", torch::tensor({std::nanf("7"), -0.0F, INFINITY})},
                          {"\xE6\x9D\x83\xE9\x87\x8D \"w\"\n", torch::ones({1})}};
  for (const auto type : {torch::kBool, torch::kByte, torch::kChar, torch::kShort, torch::kInt, torch::kLong,
                          torch::kHalf, torch::kBFloat16, torch::kFloat, torch::kDouble}) {
    tensors.emplace(torch::toString(type), numbers.to(type).view({2, 3}));
  }
  const NamedTensors loaded = save_and_load(tensors);
  EXPECT_EQ(loaded.size(), 14U);
  for (const auto& [name, tensor] : tensors) EXPECT_TRUE(is_same(loaded.at(name), tensor)) << name;
}

TEST(SafetensorsTensors, AreWrittenRowByRowWhateverTheirStrides) {
  const auto grid = torch::arange(12, torch::kInt).view({3, 4});
  const auto negated = torch::_neg_view(grid.to(torch::kFloat));
  ASSERT_TRUE(negated.is_neg() && negated.is_contiguous());
  const NamedTensors loaded =
      save_and_load({{"column", grid.select(1, 2)}, {"turned", grid.t()}, {"whole", grid}, {"negated", negated}});
  EXPECT_EQ(loaded.at("negated")[2][3].item<float>(), -11);
  EXPECT_TRUE(torch::equal(loaded.at("column"), torch::tensor({2, 6, 10}, torch::kInt)));
  EXPECT_TRUE(torch::equal(loaded.at("turned"), grid.t()));
  EXPECT_TRUE(loaded.at("turned").is_contiguous());
}

TEST(SafetensorsTensors, OfSeveralNamesAreWrittenOnce) {
  const TempFolder temp;
  const fs::path path = fs::path(temp.path()) / "a.safetensors";
  const auto weight = torch::arange(8, torch::kFloat).view({2, 4});
  save_safetensors(
      path, {{"wte", weight}, {"lm_head", weight.view({2, 4})}, {"turned", weight.t()}, {"copy", weight.clone()}});
  const SafetensorsHeader header = SafetensorsFile(path).header();
  EXPECT_EQ(header.tensors.size(), 3U);
  EXPECT_EQ(header.metadata, (Metadata{{"format", "pt"}, {"wte", "lm_head"}}));
  const NamedTensors loaded = load_safetensors(path);
  EXPECT_EQ(loaded.at("wte").data_ptr(), loaded.at("lm_head").data_ptr());
  EXPECT_NE(loaded.at("copy").data_ptr(), loaded.at("lm_head").data_ptr());
  EXPECT_TRUE(torch::equal(loaded.at("wte"), weight));
}

TEST(SafetensorsTensors, KeepTheMetadataOfTheCaller) {
  const TempFolder temp;
  const fs::path path = fs::path(temp.path()) / "a.safetensors";
  save_safetensors(path, {{"w", torch::ones(1)}}, {{"made", "by hand"}});
  EXPECT_EQ(SafetensorsFile(path).header().metadata, (Metadata{{"format", "pt"}, {"made", "by hand"}}));
  const Error error = error_of([&] { save_safetensors(path, {{"w", torch::ones(1)}}, {{"made", "w"}}); });
  EXPECT_EQ(error.message(), "safetensors: metadata made=w would be read as another name of that tensor");
  EXPECT_EQ(SafetensorsFile(path).header().metadata.at("made"), "by hand");
}

TEST(SafetensorsTensors, ThatNoFileHoldsAreRefused) {
  const auto refusal = [](const std::string& name, const Tensor& tensor) {
    const Error error = error_of([&] { save_and_load({{name, tensor}}); });
    EXPECT_EQ(error.kind(), ErrorKind::Checkpoint);
    return error.message();
  };
  EXPECT_EQ(refusal("c", torch::zeros({2}, torch::kComplexFloat)), "safetensors: tensor 'c' is ComplexFloat [2]");
  EXPECT_EQ(refusal("u", Tensor()), "safetensors: tensor 'u' is undefined, sparse or without values");
  EXPECT_EQ(refusal("s", torch::eye(2).to_sparse()), "safetensors: tensor 's' is undefined, sparse or without values");
  EXPECT_EQ(refusal("__metadata__", torch::ones(1)), "safetensors: '__metadata__' cannot be the name of a tensor");
  EXPECT_EQ(refusal("\xFF", torch::ones(1)), "safetensors: '?' cannot be the name of a tensor");
}

TEST(SafetensorsTensors, OfATypeThatTorchLacksAreNamed) {
  const FileContent content = safetensors_content({{.name = "w", .dtype = "F4", .shape = {2}, .bytes = "x"}}, {});
  const TempFile file(content.text + "x", ".safetensors");
  EXPECT_EQ(error_of([&] { load_safetensors(file.path()); }).message(),
            str("safetensors: ", file.path(), ": tensor 'w' is of type F4"));
}

TEST(CopyInto, GivesAModuleTheValuesOfAnother) {
  torch::nn::BatchNorm1d from(3);
  torch::nn::BatchNorm1d to(3);
  from->train();
  from->forward(torch::randn({8, 3}));
  copy_into(named_tensors(*to), named_tensors(*from));
  EXPECT_TRUE(torch::equal(to->running_mean, from->running_mean));
  EXPECT_EQ(to->num_batches_tracked.item<int>(), 1);
  EXPECT_TRUE(to->weight.requires_grad());
}

TEST(CopyInto, ListsAllThatDiffersAndCopiesNothing) {
  const NamedTensors targets = {
      {"a", torch::zeros({2, 3})}, {"b", torch::zeros({4})}, {"c", torch::zeros({1})}, {"d", torch::zeros({})}};
  const NamedTensors values = {{"a", torch::ones({3, 2})},
                               {"b", torch::ones({4}, torch::kHalf)},
                               {"d", torch::ones({})},
                               {"e", torch::ones({5})}};
  const Error error = error_of([&] { copy_into(targets, values); });
  EXPECT_EQ(error.kind(), ErrorKind::Checkpoint);
  EXPECT_EQ(error.message(),
            "checkpoint: 4 of 5 tensors do not fit: a is Float [3, 2] and should be Float [2, 3]; "
            "b is Half [4] and should be Float [4]; c [1] is missing; e [5] is unexpected");
  EXPECT_EQ(targets.at("d").item<float>(), 0);
}

Checkpoint sample(std::int64_t step) {
  const auto value = static_cast<float>(step);
  return {.step = step,
          .model = {{"weight", torch::full({50, 40}, value)}, {"head", torch::full({3}, -value)}},
          .optimizer = {{"exp_avg.weight", torch::full({50, 40}, value / 3)}},
          .state = str(R"({"cursor":)", step * 7, '}')};
}

void expect_same(const Checkpoint& one, const Checkpoint& other) {
  EXPECT_EQ(one.step, other.step);
  EXPECT_EQ(one.state, other.state);
  ASSERT_EQ(one.model.size(), other.model.size());
  ASSERT_EQ(one.optimizer.size(), other.optimizer.size());
  for (const auto& [name, tensor] : one.model) EXPECT_TRUE(is_same(tensor, other.model.at(name))) << name;
  for (const auto& [name, tensor] : one.optimizer) EXPECT_TRUE(is_same(tensor, other.optimizer.at(name))) << name;
}

TEST(Checkpoint, ComesBackAsItWasSaved) {
  const TempFolder temp;
  const fs::path path = save_checkpoint(temp.path(), sample(120));
  EXPECT_EQ(path, fs::path(temp.path()) / "step-00000120");
  EXPECT_EQ(find_checkpoint(temp.path()).path, path);
  expect_same(load_checkpoint(path), sample(120));
}

// The example of docs/checkpoints.md.
TEST(Checkpoint, IsUsedAsTheDocumentSays) {
  const TempFolder temp;
  const fs::path folder = temp.path();
  torch::nn::Linear model(3, 2);
  const torch::Tensor momentum = torch::ones({2, 3});
  tandem::Checkpoint now{.step = 120,
                         .model = tandem::named_tensors(*model),
                         .optimizer = {{"momentum.weight", momentum}},
                         .state = R"({"cursor": 960})"};
  tandem::save_checkpoint(folder, now);

  const tandem::FoundCheckpoint found =
      tandem::find_checkpoint(folder, tandem::Which::Newest, tandem::Check::Checksums);
  for (const auto& [path, why] : found.passed_over) ADD_FAILURE() << why;
  const tandem::Checkpoint saved = tandem::load_checkpoint(found.path.value());
  tandem::copy_into(now.model, saved.model);
  tandem::copy_into(now.optimizer, saved.optimizer);
  EXPECT_EQ(saved.state, R"({"cursor": 960})");
}

TEST(Checkpoint, WithAStateThatIsNoJsonIsNotSaved) {
  const TempFolder temp;
  Checkpoint checkpoint = sample(1);
  checkpoint.state = "cursor=7";
  EXPECT_EQ(error_of([&] { save_checkpoint(temp.path(), checkpoint); }).kind(), ErrorKind::Checkpoint);
  EXPECT_TRUE(fs::is_empty(temp.path()));
}

TEST(Checkpoint, IsNotLoadedWhenAnythingOfItIsMissing) {
  const TempFolder temp;
  const fs::path path = save_checkpoint(temp.path(), sample(1));
  for (const char* name : {"model.safetensors", "optimizer.safetensors", "state.json", "DONE"}) {
    const std::string whole = read_file(path / name);
    const std::size_t stride = whole.size() / 20 + 1;
    for (std::size_t length = 0; length + 2 < whole.size(); length += stride) {
      fs::resize_file(path / name, length);
      EXPECT_EQ(error_of([&] { load_checkpoint(path); }).kind(), ErrorKind::Checkpoint) << name << ' ' << length;
      temp.add(str("step-00000001/", name), whole);
    }
  }
  expect_same(load_checkpoint(path), sample(1));
}

TEST(Checkpoint, IsNotLoadedWhenAByteHasChanged) {
  const TempFolder temp;
  const fs::path path = save_checkpoint(temp.path(), sample(1));
  std::string bytes = read_file(path / "optimizer.safetensors");
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  temp.add("step-00000001/optimizer.safetensors", bytes);
  EXPECT_TRUE(says(error_of([&] { load_checkpoint(path); }).message(),
                   {"checksum", (path / "optimizer.safetensors").native()}));
}

TEST(CheckpointSaver, SavesTheValuesOfTheMomentOfItsCall) {
  const TempFolder temp;
  Checkpoint training = sample(1);
  CheckpointSaver saver(temp.path());
  EXPECT_EQ(saver.finish(), std::nullopt);
  for (std::int64_t step = 1; step <= 3; ++step) {
    const Checkpoint now = sample(step);
    training.step = step;
    training.state = now.state;
    copy_into(training.model, now.model);
    copy_into(training.optimizer, now.optimizer);
    saver.save(training);
    for (const auto& [name, tensor] : training.model) tensor.fill_(99);
  }
  EXPECT_EQ(saver.finish(), fs::path(temp.path()) / "step-00000003");
  for (std::int64_t step = 1; step <= 3; ++step) {
    expect_same(load_checkpoint(fs::path(temp.path()) / str("step-0000000", step)), sample(step));
  }
}

TEST(CheckpointSaver, FollowsTensorsThatComeGoAndChangeTheirShape) {
  const TempFolder temp;
  CheckpointSaver saver(temp.path());
  const auto tied = torch::arange(4, torch::kFloat);
  saver.save({.step = 1, .model = {{"a", tied}, {"b", tied}, {"c", torch::ones(2)}}, .optimizer = {}});
  saver.save({.step = 2, .model = {{"a", torch::zeros(4)}, {"b", tied}, {"c", torch::ones({3, 1})}}, .optimizer = {}});
  saver.save({.step = 3, .model = {{"b", tied}}, .optimizer = {}});
  saver.finish();
  const fs::path folder = temp.path();
  EXPECT_EQ(SafetensorsFile(folder / "step-00000001/model.safetensors").header().metadata.at("b"), "a");
  const Checkpoint second = load_checkpoint(folder / "step-00000002");
  EXPECT_TRUE(torch::equal(second.model.at("a"), torch::zeros(4)));
  EXPECT_TRUE(torch::equal(second.model.at("b"), tied));
  EXPECT_TRUE(torch::equal(second.model.at("c"), torch::ones({3, 1})));
  EXPECT_EQ(load_checkpoint(folder / "step-00000003").model.size(), 1U);
}

TEST(CheckpointSaver, TellsOfAFailureAtTheNextCall) {
  const TempFolder temp;
  const fs::path folder = fs::path(temp.path()) / "run/checkpoints";
  CheckpointSaver saver(folder);
  fs::remove_all(folder.parent_path());
  saver.save(sample(1));
  EXPECT_TRUE(says(error_of([&] { saver.save(sample(2)); }).message(), {folder.native()}));
  saver.save(sample(3));
  EXPECT_EQ(error_of([&] { saver.finish(); }).kind(), ErrorKind::Checkpoint);
  EXPECT_EQ(saver.finish(), std::nullopt);
}

TEST(CheckpointSaver, SaysAtOnceWhichFolderCannotBeMade) {
  const TempFile file("");
  EXPECT_TRUE(says(error_of([&] { CheckpointSaver(fs::path(file.path()) / "checkpoints"); }).message(), {file.path()}));
}

TEST(CheckpointSaver, FinishesTheSaveBeforeItGoes) {
  const TempFolder temp;
  { CheckpointSaver(temp.path()).save(sample(5)); }
  expect_same(load_checkpoint(fs::path(temp.path()) / "step-00000005"), sample(5));
}

TEST(CheckpointWeights, AreThoseOfAPartOrOfItsAverage) {
  const auto value = [](double x) { return torch::full({1}, x); };
  const Checkpoint one{.model = {{"w", value(1)}, {"buffer", value(2)}},
                       .optimizer = {{"exp_avg.w", value(3)}, {"ema.average.w", value(4)}, {"ema.updates", value(5)}}};
  EXPECT_EQ(weights_of(one).at("w").item<double>(), 1);
  EXPECT_TRUE(has_average(one));
  const NamedTensors averaged = weights_of(one, {.is_averaged = true});
  EXPECT_EQ(averaged.size(), 2U);
  EXPECT_EQ(averaged.at("w").item<double>(), 4);
  EXPECT_EQ(averaged.at("buffer").item<double>(), 2);

  const Checkpoint parts{.model = {{"g.w", value(1)}, {"d.w", value(2)}},
                         .optimizer = {{"g.ema-slow.average.w", value(6)}, {"d.exp_avg.w", value(7)}}};
  EXPECT_EQ(weights_of(parts, {.part = "d"}).at("w").item<double>(), 2);
  EXPECT_EQ(weights_of(parts, {.is_averaged = true, .part = "g", .average = "slow"}).at("w").item<double>(), 6);
  EXPECT_FALSE(has_average(parts, {.part = "d"}));
  EXPECT_EQ(error_of([&] { weights_of(parts, {.is_averaged = true, .part = "d"}); }).kind(), ErrorKind::Checkpoint);
  EXPECT_NE(error_of([&] { weights_of(parts, {.part = "x"}); }).message().find("'x'"), std::string::npos);
}

}  // namespace
}  // namespace tandem
