#include "multiproc/transport_contract.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "base/worker_env.h"

namespace tandem {
namespace {

using torch::Tensor;

constexpr std::array kSummed = {torch::kFloat, torch::kDouble, torch::kHalf, torch::kBFloat16,
                                torch::kInt,   torch::kLong,   torch::kByte};

Tensor full(Communicator& comm, at::IntArrayRef shape, double value, torch::ScalarType type = torch::kFloat) {
  return torch::full(shape, value, torch::TensorOptions(type).device(comm.device()));
}

bool is_all(const Tensor& tensor, double value) { return tensor.eq(value).all().item<bool>(); }

// 1 + 2 + ... + size: the sum over the ranks if rank r contributes r + 1.
double sum_of_ranks(const Communicator& comm) { return comm.world().size * (comm.world().size + 1) / 2.0; }

void sums_every_type(Communicator& comm) {
  for (const auto type : kSummed) {
    for (const std::int64_t count : {1, 3, 64, 1000, 100'003}) {
      const Tensor pattern =
          torch::arange(count, torch::TensorOptions(torch::kLong).device(comm.device())).remainder(5);
      const Tensor mine = ((pattern + 1) * (comm.world().rank + 1)).to(type);
      comm.all_reduce(mine).wait();
      const Tensor expected = ((pattern + 1) * static_cast<std::int64_t>(sum_of_ranks(comm))).to(type);
      EXPECT_TRUE(mine.equal(expected)) << torch::toString(type) << ", " << count << " elements";
    }
  }
}

void computes_minimum_and_maximum(Communicator& comm) {
  for (const auto type : kSummed) {
    const Tensor least = full(comm, {5}, 100 - comm.world().rank, type);
    comm.all_reduce(least, ReduceOp::Min).wait();
    EXPECT_TRUE(is_all(least, 101 - comm.world().size)) << torch::toString(type);
    const Tensor greatest = full(comm, {5}, 10 + comm.world().rank, type);
    comm.all_reduce(greatest, ReduceOp::Max).wait();
    EXPECT_TRUE(is_all(greatest, 9 + comm.world().size)) << torch::toString(type);
  }
}

void reduces_bools(Communicator& comm) {
  const bool is_last = comm.world().rank == comm.world().size - 1;
  const Tensor any = full(comm, {3}, is_last ? 1 : 0, torch::kBool);
  comm.all_reduce(any, ReduceOp::Max).wait();
  EXPECT_TRUE(any.all().item<bool>());
  const Tensor all = full(comm, {3}, is_last ? 0 : 1, torch::kBool);
  comm.all_reduce(all, ReduceOp::Min).wait();
  EXPECT_FALSE(all.any().item<bool>());
}

void divides_a_sum(Communicator& comm) {
  for (const auto type : {torch::kFloat, torch::kDouble, torch::kHalf, torch::kBFloat16}) {
    const Tensor tensor = full(comm, {7}, 4 * (comm.world().rank + 1), type);
    comm.all_reduce(tensor, ReduceOp::Sum, 2).wait();
    EXPECT_TRUE(is_all(tensor, 2 * sum_of_ranks(comm))) << torch::toString(type);
  }
  EXPECT_EQ(comm.mean(comm.world().rank + 1), sum_of_ranks(comm) / comm.world().size);
}

void accepts_any_shape(Communicator& comm) {
  const Tensor matrix = full(comm, {4, 6}, comm.world().rank + 1);
  const Tensor turned = matrix.t();
  comm.all_reduce(turned).wait();
  EXPECT_TRUE(is_all(matrix, sum_of_ranks(comm)));

  const Tensor every_second = matrix.slice(1, 0, 6, 2);
  comm.broadcast(every_second.zero_().add_(comm.world().rank + 7), comm.world().size - 1).wait();
  EXPECT_TRUE(is_all(every_second, comm.world().size + 6));
  EXPECT_TRUE(is_all(matrix.slice(1, 1, 6, 2), sum_of_ranks(comm)));

  const Tensor scalar = full(comm, {}, comm.world().rank + 1);
  comm.all_reduce(scalar).wait();
  EXPECT_EQ(scalar.item<float>(), sum_of_ranks(comm));

  comm.all_reduce(full(comm, {0, 3}, 0)).wait();
  comm.broadcast(full(comm, {0}, 0)).wait();
  comm.all_gather(full(comm, {0}, 0), full(comm, {0}, 0)).wait();

  const Tensor leaf = full(comm, {2}, comm.world().rank + 1).requires_grad_();
  comm.all_reduce(leaf).wait();
  EXPECT_TRUE(is_all(leaf, sum_of_ranks(comm)));
}

void gathers_in_rank_order(Communicator& comm) {
  for (const std::int64_t count : {1, 1000, 70'001}) {
    const Tensor mine = full(comm, {count}, comm.world().rank + 1);
    const Tensor all = full(comm, {comm.world().size, count}, -1);
    comm.all_gather(mine, all).wait();
    for (int rank = 0; rank < comm.world().size; ++rank) EXPECT_TRUE(is_all(all[rank], rank + 1)) << rank;
    EXPECT_TRUE(is_all(mine, comm.world().rank + 1));
  }
}

void reduces_and_scatters(Communicator& comm) {
  for (const std::int64_t count : {1, 1000, 70'001}) {
    const Tensor parts = full(comm, {comm.world().size, count}, comm.world().rank + 1);
    for (int rank = 0; rank < comm.world().size; ++rank) parts[rank].mul_(rank + 1);
    const Tensor before = parts.clone();
    const Tensor mine = full(comm, {count}, -1);
    comm.reduce_scatter(parts, mine).wait();
    EXPECT_TRUE(is_all(mine, (comm.world().rank + 1) * sum_of_ranks(comm)));
    EXPECT_TRUE(parts.equal(before));
  }
}

void broadcasts_from_any_rank(Communicator& comm) {
  for (int root = 0; root < comm.world().size; ++root) {
    for (const std::int64_t count : {1, 100'003}) {
      const Tensor tensor = full(comm, {count}, comm.world().rank + 10, torch::kLong);
      comm.broadcast(tensor, root).wait();
      EXPECT_TRUE(is_all(tensor, root + 10));
    }
  }
}

void works_in_its_own_memory(Communicator& comm) {
  const Tensor tensor = comm.empty(50'000, full(comm, {1}, 0).options());
  tensor.fill_(comm.world().rank + 1);
  const void* memory = tensor.const_data_ptr();
  comm.all_reduce(tensor).wait();
  EXPECT_TRUE(is_all(tensor, sum_of_ranks(comm)));
  comm.broadcast(tensor.fill_(comm.world().rank + 5), comm.world().size - 1).wait();
  EXPECT_TRUE(is_all(tensor, comm.world().size + 4));
  EXPECT_EQ(tensor.const_data_ptr(), memory);
}

void has_many_in_flight(Communicator& comm) {
  constexpr int kCount = 600;
  std::vector<Tensor> tensors;
  std::vector<Work> works;
  for (int i = 0; i < kCount; ++i) {
    tensors.push_back(full(comm, {i + 1}, comm.world().rank + 1, torch::kDouble));
    works.push_back(comm.all_reduce(tensors.back()));
  }
  for (auto work = works.rbegin(); work != works.rend(); ++work) work->wait();
  works.front().wait();
  for (const Tensor& tensor : tensors) EXPECT_TRUE(is_all(tensor, sum_of_ranks(comm)));
}

void gathers_different_lengths(Communicator& comm) {
  const std::string end("\0end", 4);
  const auto texts = comm.all_gather_bytes(std::string(comm.world().rank * 3, 'x') + end);
  ASSERT_EQ(texts.size(), comm.world().size);
  for (int rank = 0; rank < comm.world().size; ++rank) EXPECT_EQ(texts[rank], std::string(rank * 3, 'x') + end);

  const auto tensors = comm.all_gather_uneven(full(comm, {comm.world().rank, 2}, comm.world().rank + 1, torch::kLong));
  ASSERT_EQ(tensors.size(), comm.world().size);
  for (int rank = 0; rank < comm.world().size; ++rank) {
    EXPECT_EQ(tensors[rank].sizes(), (std::vector<std::int64_t>{rank, 2}));
    EXPECT_TRUE(is_all(tensors[rank], rank + 1));
    EXPECT_EQ(tensors[rank].device(), comm.device());
  }
}

void gives_all_ranks_the_same_bits(Communicator& comm) {
  torch::manual_seed(comm.world().rank);
  const Tensor mine = torch::randn({10'001}).to(comm.device());
  comm.all_reduce(mine).wait();
  const Tensor all = full(comm, {comm.world().size, 10'001}, -1);
  comm.all_gather(mine, all).wait();
  for (int rank = 0; rank < comm.world().size; ++rank) EXPECT_TRUE(all[rank].equal(mine)) << rank;
}

// The first sum of each round is not waited for; the second must still be correct.
void completes_without_wait(Communicator& comm) {
  for (int round = 0; round < 200; ++round) {
    const Tensor dropped = full(comm, {5000}, 1000 + round);
    { const Work nobody_waits = comm.all_reduce(dropped); }
    const Tensor tensor = full(comm, {5000}, comm.world().rank + 1);
    comm.all_reduce(tensor).wait();
    EXPECT_TRUE(is_all(tensor, sum_of_ranks(comm))) << round;
  }
}

// Rank 0 creates a file before the barrier; the others must see it afterwards.
void meets_at_a_barrier(Communicator& comm) {
  // Unique to this run: the ranks share a parent, and its other runs have other sizes or ports.
  const std::string file = str("/tmp/tandem-barrier-", ::getppid(), '-', comm.world().size, '-',
                               environment_variable("MASTER_PORT").value_or("alone"));
  if (comm.world().is_main()) std::ofstream(file) << "rank 0 was here";
  comm.barrier();
  EXPECT_TRUE(std::filesystem::exists(file));
  comm.barrier();
  if (comm.world().is_main()) std::filesystem::remove(file);
}

void has_a_duplicate(Communicator& comm) {
  Communicator other = comm.duplicate();
  const Tensor tensor = full(comm, {3}, comm.world().rank + 1);
  other.all_reduce(tensor).wait();
  EXPECT_TRUE(is_all(tensor, sum_of_ranks(comm)));
}

}  // namespace

std::vector<ContractClause> transport_contract() {
  return {{"sums every type", sums_every_type},
          {"computes minimum and maximum", computes_minimum_and_maximum},
          {"reduces bools", reduces_bools},
          {"divides a sum", divides_a_sum},
          {"accepts any shape", accepts_any_shape},
          {"gathers in rank order", gathers_in_rank_order},
          {"reduces and scatters", reduces_and_scatters},
          {"broadcasts from any rank", broadcasts_from_any_rank},
          {"works in its own memory", works_in_its_own_memory},
          {"has many in flight", has_many_in_flight},
          {"gathers tensors of different lengths", gathers_different_lengths},
          {"completes without wait", completes_without_wait},
          {"gives all ranks the same bits", gives_all_ranks_the_same_bits},
          {"meets at a barrier", meets_at_a_barrier},
          {"has a duplicate", has_a_duplicate}};
}

void check_contract(Communicator& comm) {
  for (const ContractClause& clause : transport_contract()) {
    SCOPED_TRACE(clause.fact);
    clause.check(comm);
  }
}

}  // namespace tandem
