#include "kernels/huge_pages.h"

#include <gtest/gtest.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cstdio>
#include <fstream>
#include <string>

namespace tandem {
namespace {

using torch::Tensor;

// kB in huge pages of the mapping that contains this address.
long huge_kilobytes(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  bool is_there = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) is_there = begin <= wanted && wanted < end;
    long size = 0;
    if (is_there && std::sscanf(line.c_str(), "AnonHugePages: %ld kB", &size) == 1) return size;
  }
  return -1;
}

bool kernel_has_huge_pages() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string line;
  return std::getline(file, line) && line.find("[never]") == std::string::npos;
}

TEST(HugePages, HoldTheSameValues) {
  torch::manual_seed(1);
  torch::nn::Sequential model(torch::nn::Linear(1000, 999), torch::nn::BatchNorm1d(999), torch::nn::Linear(999, 3));
  const Tensor x = torch::randn({2, 1000});
  model->eval();
  const Tensor expected = model->forward(x);
  const Tensor first = model->parameters().front();
  use_huge_pages(*model);
  EXPECT_TRUE(model->forward(x).equal(expected));
  EXPECT_EQ(huge_kilobytes(first.const_data_ptr()) > 0, kernel_has_huge_pages());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first.const_data_ptr()) % (2 << 20), 0);
  for (const Tensor& parameter : model->parameters()) {
    const auto place =
        static_cast<const char*>(parameter.const_data_ptr()) - static_cast<const char*>(first.const_data_ptr());
    EXPECT_TRUE(place >= 0 && place < (4 << 20)) << place;
    EXPECT_EQ(place % 64, 0);
    EXPECT_TRUE(parameter.requires_grad());
  }
}

TEST(HugePages, LiveAsLongAsATensorInThem) {
  Tensor weight;
  {
    torch::nn::Linear model(1000, 1000);
    torch::nn::init::ones_(model->weight);
    use_huge_pages(*model);
    weight = model->weight;
  }
  EXPECT_EQ(weight.sum().item<float>(), 1e6F);
}

TEST(HugePages, AreNotUsedForASmallModel) {
  torch::nn::Linear model(10, 10);
  const void* before = model->weight.const_data_ptr();
  use_huge_pages(*model);
  EXPECT_EQ(model->weight.const_data_ptr(), before);
}

}  // namespace
}  // namespace tandem
