#include "recipes/segment/guide_flags.h"

#include <gtest/gtest.h>

#include "base/error_test.h"
#include "base/text.h"

namespace tandem::segment {
namespace {

// What the flags of a command line become.
std::string ours(const std::string& flags, std::optional<std::int64_t> launched_ranks = {}) {
  std::vector<std::string> words = {"tandem-segment", "train"};
  for (const std::string& word : split(flags, ' ')) words.push_back(word);
  const std::vector<std::string> all = translate_guide_flags(words, 2, launched_ranks);
  EXPECT_EQ(all[0], "tandem-segment");
  EXPECT_EQ(all[1], "train");
  return join(std::vector(all.begin() + 2, all.end()), " ");
}

void expect_refused(const std::string& flags, std::initializer_list<std::string_view> facts,
                    std::optional<std::int64_t> launched_ranks = {}) {
  const Error error = error_of([&] { ours(flags, launched_ranks); });
  EXPECT_EQ(error.kind(), ErrorKind::Usage) << flags;
  EXPECT_TRUE(says(error.message(), facts)) << flags;
  EXPECT_FALSE(error.hint().empty()) << flags;
}

TEST(GuideFlags, GetOurNames) {
  EXPECT_EQ(ours("--batchsize 8 --logdir ./log/ --layers 50"), "--batch-size 8 --run-dir ./log/ --layers 50");
  EXPECT_EQ(ours("--batchsize=8"), "--batch-size 8");
  EXPECT_EQ(ours("--l_pesudo 1 --wdecay 5e-4"), "--l_pesudo 1 --wdecay 5e-4") << "known as they are";
}

TEST(GuideFlags, OfAProcessGroupAreLeftOut) {
  EXPECT_EQ(ours("--distributed --dist_url env:// --lr 1"), "--lr 1");
  expect_refused("--dist_url tcp://localhost:23456", {"--dist_url is tcp://localhost:23456", "env://"});
}

TEST(GuideFlags, ALocalRankMeansOneRankUnlessALauncherStartedIt) {
  EXPECT_EQ(ours("--distributed --local_rank=0"), "--nproc 1");
  EXPECT_EQ(ours("--local-rank 0 --lr 1"), "--lr 1 --nproc 1");
  EXPECT_EQ(ours("--local_rank -1"), "");
  EXPECT_EQ(ours("--distributed --local_rank=1", /*launched_ranks=*/2), "") << "of torch.distributed.launch";
}

TEST(GuideFlags, ALocalRankMayPrecedeTheCommand) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(command_first({"tandem-segment", "--local-rank=1", "train", "--lr", "1"}),
            (Words{"tandem-segment", "train", "--local-rank=1", "--lr", "1"}));
  EXPECT_EQ(command_first({"tandem-segment", "train", "--local-rank=1"}),
            (Words{"tandem-segment", "train", "--local-rank=1"}));
  EXPECT_EQ(command_first({"tandem-segment", "--help"}), (Words{"tandem-segment", "--help"}));
}

TEST(GuideFlags, AWorldSizeIsTheNumberOfRanks) {
  EXPECT_EQ(ours("--distributed --world_size 2"), "--nproc 2");
  EXPECT_EQ(ours("--world_size 2", /*launched_ranks=*/2), "");
  expect_refused("--world_size 2", {"--world_size 2", "the launcher started 1 rank"}, /*launched_ranks=*/1);
}

TEST(GuideFlags, ThatAskForOtherNumbersOfRanksAreRefusedInAnyOrder) {
  EXPECT_EQ(ours("--nproc 1 --local_rank 0"), "--nproc 1");
  EXPECT_EQ(ours("--nproc 2 --world_size 2"), "--nproc 2");
  for (const char* flags : {"--nproc 2 --local_rank 0", "--local_rank 0 --nproc=2"}) {
    expect_refused(flags, {"--local_rank 0"});
    expect_refused(flags, {"--nproc 2"});
  }
  expect_refused("--local_rank 0 --world_size 4", {"--local_rank 0 asks for 1 rank", "--world_size 4 for 4"});
}

TEST(GuideFlags, ThatMakeNoSenseAreNamedAsTheyWereTyped) {
  expect_refused("--local_rank=abc", {"--local_rank is 'abc'", "not an integer"});
  expect_refused("--local_rank=abc", {"--local_rank is 'abc'"}, /*launched_ranks=*/2);
  expect_refused("--world_size abc", {"--world_size is 'abc'"});
  expect_refused("--distributed=1", {"--distributed takes no value"});
  expect_refused("--batchsize x", {"--batchsize is 'x'"});
  expect_refused("--batchsize 0", {"--batchsize is 0"});
  expect_refused("--batchsize", {"--batchsize needs a value"});
  expect_refused("--logdir --distributed", {"--logdir needs a value"});
}

TEST(GuideFlags, ADeviceIsACudaDevice) {
  EXPECT_EQ(ours("--device cuda"), "--device cuda") << "every GPU, and an Error without one";
  EXPECT_EQ(ours("--device cuda:1"), "--device 1");
  EXPECT_EQ(ours("--device cpu"), "--device cpu");
}

TEST(GuideFlags, OfTheModel) {
  EXPECT_EQ(ours("--model_path None --shrink_factor 1"), "");
  EXPECT_EQ(ours("--model_path resnet50.safetensors"), "--init resnet50.safetensors");
  expect_refused("--shrink_factor 2", {"--shrink_factor is 2"});
}

TEST(GuideFlags, AreInTheHelp) {
  const std::string help = guide_flags_help();
  EXPECT_TRUE(
      says(help, {"flags of guide 002:", "--batchsize", "the same as --batch-size", "--dist-url", "env:// only"}));
  EXPECT_FALSE(says(help, {"\n      --nproc"}));
}

}  // namespace
}  // namespace tandem::segment
