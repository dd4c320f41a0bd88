// Time of one all_reduce of floats. Rank 0 prints it as one JSON object.
//
//   tandem run -n 2 build/bin/bench/all_reduce --bytes 4096

#include <tandem/tandem.h>
#include <torch/types.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "run_bench.h"

namespace tandem::bench {

struct AllReduceOptions {
  std::int64_t bytes = 4096;
  bool ordinary = false;
  int iterations = 1000;
};

template <class Visitor>
void visit_fields(AllReduceOptions& o, Visitor&& field) {
  field("bytes", o.bytes, "size of the tensor");
  field("ordinary", o.ordinary, "a tensor of torch, not of the communicator");
  field("iterations", o.iterations, "how often, after as many to warm up");
}

namespace {

double median_seconds(Communicator& comm, const torch::Tensor& tensor, int iterations) {
  std::vector<double> seconds;
  for (int i = 0; i < 2 * iterations; ++i) {
    const Stopwatch watch;
    comm.all_reduce(tensor).wait();
    if (i >= iterations) seconds.push_back(watch.seconds());
  }
  std::nth_element(seconds.begin(), seconds.begin() + iterations / 2, seconds.end());
  return seconds[static_cast<std::size_t>(iterations / 2)];
}

// Element i of rank r is (r + 1) * (i mod 1000), so that no rank has the sum initially.
double largest_error(Communicator& comm, const torch::Tensor& tensor) {
  const torch::Tensor ramp = torch::arange(tensor.numel()).remainder(1000).to(torch::kFloat);
  const int size = comm.world().size;
  tensor.copy_(ramp * (comm.world().rank + 1));
  comm.all_reduce(tensor).wait();
  const torch::Tensor error = (tensor - ramp * (size * (size + 1) / 2)).abs().max();
  comm.all_reduce(error, ReduceOp::Max).wait();
  return error.item<double>();
}

Json measure(const AllReduceOptions& options, const World&) {
  Communicator comm = Communicator::join();
  const std::int64_t count = options.bytes / static_cast<std::int64_t>(sizeof(float));
  const torch::Tensor tensor = options.ordinary ? torch::empty({count}) : comm.empty(count, torch::kFloat);
  tensor.zero_();  // sums of zeros stay zero
  const double seconds = median_seconds(comm, tensor, options.iterations);
  return Json::Object{{"us", 1e6 * seconds}, {"max_diff", largest_error(comm, tensor)}};
}

}  // namespace
}  // namespace tandem::bench

int main(int argc, char** argv) {
  return tandem::bench::run_bench<tandem::bench::AllReduceOptions>({argv + 1, argv + argc}, "all_reduce",
                                                                   "Times all_reduce.", tandem::bench::measure);
}
