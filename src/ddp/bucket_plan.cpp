#include "ddp/bucket_plan.h"

#include <algorithm>
#include <map>
#include <utility>

namespace tandem {
namespace {

struct PlannedBucket {
  std::vector<std::size_t> members;
  std::uint64_t bytes = 0;
  std::size_t full_at = 0;  // position of its last member in the order
};

}  // namespace

BucketPlan plan_buckets(std::span<const GradientSize> gradients, std::span<const std::size_t> order, Bytes first_cap,
                        Bytes cap) {
  std::vector<PlannedBucket> buckets;
  std::map<c10::ScalarType, PlannedBucket> open;
  for (std::size_t place = 0; place < order.size(); ++place) {
    const GradientSize& gradient = gradients[order[place]];
    PlannedBucket& bucket = open[gradient.type];
    bucket.members.push_back(order[place]);
    bucket.bytes += gradient.bytes;
    bucket.full_at = place;
    if (bucket.bytes < (buckets.empty() ? first_cap : cap).count) continue;
    buckets.push_back(std::move(bucket));
    open.erase(gradient.type);
  }
  for (auto& [type, bucket] : open) buckets.push_back(std::move(bucket));
  std::ranges::sort(buckets, {}, &PlannedBucket::full_at);

  BucketPlan plan;
  for (PlannedBucket& bucket : buckets) plan.push_back(std::move(bucket.members));
  return plan;
}

}  // namespace tandem
