#include "recipes/segment/guide_flags.h"

#include <gtest/gtest.h>

#include "base/error_test.h"
#include "base/text.h"

namespace tandem::segment {
namespace {

// What the flags of a command line become.
std::string ours(const std::string& flags, bool is_worker = false) {
  std::vector<std::string> words = {"tandem-segment", "train"};
  for (const std::string& word : split(flags, ' ')) words.push_back(word);
  const std::vector<std::string> all = translate_guide_flags(words, 2, is_worker);
  EXPECT_EQ(all[0], "tandem-segment");
  EXPECT_EQ(all[1], "train");
  return join(std::vector(all.begin() + 2, all.end()), " ");
}

TEST(GuideFlags, GetOurNames) {
  EXPECT_EQ(ours("--batchsize 8 --logdir ./log/ --layers 50"), "--batch-size 8 --run-dir ./log/ --layers 50");
  EXPECT_EQ(ours("--batchsize=8"), "--batch-size 8");
  EXPECT_EQ(ours("--l_pesudo 1 --wdecay 5e-4"), "--l_pesudo 1 --wdecay 5e-4") << "known as they are";
}

TEST(GuideFlags, OfAProcessGroupAreLeftOut) {
  EXPECT_EQ(ours("--distributed --world_size 2 --dist_url env:// --lr 1"), "--lr 1");
  const Error error = error_of([] { ours("--dist_url tcp://localhost:23456"); });
  EXPECT_EQ(error.kind(), ErrorKind::Usage);
  EXPECT_NE(error.message().find("tcp://localhost:23456"), std::string::npos);
}

TEST(GuideFlags, ALocalRankMeansOneRankUnlessALauncherStartedIt) {
  EXPECT_EQ(ours("--distributed --local_rank=0"), "--nproc 1");
  EXPECT_EQ(ours("--local-rank 0"), "--nproc 1");
  EXPECT_EQ(ours("--local_rank -1"), "");
  EXPECT_EQ(ours("--distributed --local_rank=1", /*is_worker=*/true), "") << "of torch.distributed.launch";
}

TEST(GuideFlags, ADeviceIsACudaDevice) {
  EXPECT_EQ(ours("--device cuda"), "--device auto");
  EXPECT_EQ(ours("--device cuda:1"), "--device 1");
  EXPECT_EQ(ours("--device cpu"), "--device cpu");
}

TEST(GuideFlags, OfTheModel) {
  EXPECT_EQ(ours("--model_path None --shrink_factor 1"), "");
  EXPECT_EQ(ours("--model_path resnet50.safetensors"), "--init resnet50.safetensors");
  EXPECT_EQ(error_of([] { ours("--shrink_factor 2"); }).kind(), ErrorKind::Usage);
}

TEST(GuideFlags, WithoutAValueAreLeftToTheParser) { EXPECT_EQ(ours("--batchsize"), "--batchsize"); }

}  // namespace
}  // namespace tandem::segment
