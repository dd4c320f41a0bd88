#include "recipe/prediction.h"

#include <gtest/gtest.h>

#include "base/temp_test.h"
#include "base/text.h"
#include "multiproc/run_ranks.h"

namespace tandem {
namespace {

using Ids = std::vector<std::int64_t>;

// Rows "0", "1", ... in batches of 3, last row first; which were computed, in this process, goes to `computed`.
std::string predicted(Communicator& comm, std::int64_t num_rows, const std::filesystem::path& output,
                      Ids* computed = nullptr) {
  Prediction prediction(comm, {.num_rows = num_rows, .output = output, .key = [] { return "1-2"; }});
  Ids order;
  for (std::int64_t row = num_rows; row-- > 0;) order.push_back(row);
  Sampler sampler = prediction.sampler(3, order);
  for (const SampleBatch& batch : evaluate(comm, sampler, prediction.rounds())) {
    std::vector<std::string> rows;
    for (const std::int64_t id : batch.ids) rows.push_back(str(id));
    if (computed != nullptr) computed->insert(computed->end(), batch.ids.begin(), batch.ids.end());
    prediction.add(batch, rows);
  }
  return join(prediction.rows(), ",");
}

TEST(Prediction, HasEachRowOnceInTheOrderOfTheInputOnAnyNumberOfRanks) {
  for (const int size : {1, 2, 3}) {
    run_ranks(size, [](const World&) {
      Communicator comm = Communicator::join();
      EXPECT_EQ(predicted(comm, 0, {}), "");
      EXPECT_EQ(predicted(comm, 1, {}), "0");
      EXPECT_EQ(predicted(comm, 7, {}), "0,1,2,3,4,5,6");
    });
  }
}

TEST(Prediction, ComputesWholeBatchesOfWhichADraftLacksARow) {
  const TempFolder folder;
  const std::filesystem::path output = std::filesystem::path(folder.path()) / "out.txt";
  const std::vector<DraftRow> kept = {{6, "six"}, {5, "five"}, {4, "four"}, {3, "three"}};  // a batch, and one row more
  Draft(output, "1-2", 7).keep(kept);
  Communicator comm = Communicator::join();
  Ids computed;
  EXPECT_EQ(predicted(comm, 7, output, &computed), "0,1,2,three,four,five,six");
  EXPECT_EQ(computed, (Ids{3, 2, 1, 0}));
  EXPECT_EQ(Draft(output, "1-2", 7).rows().size(), 7U);
}

TEST(Prediction, RemovesItsDraftOnceTheOutputIsWritten) {
  const TempFolder folder;
  const std::filesystem::path output = std::filesystem::path(folder.path()) / "out.txt";
  Communicator comm = Communicator::join();
  Prediction prediction(comm, {.num_rows = 1, .output = output, .key = [] { return "1-2"; }});
  Sampler sampler = prediction.sampler(1);
  for (const SampleBatch& batch : evaluate(comm, sampler, prediction.rounds())) {
    prediction.add(batch, std::vector<std::string>{"row"});
  }
  EXPECT_TRUE(std::filesystem::exists(output.native() + ".part"));
  prediction.write([&](std::span<const std::string> rows) { replace_file(output, rows[0]); });
  EXPECT_EQ(read_file(output), "row");
  EXPECT_FALSE(std::filesystem::exists(output.native() + ".part"));
}

}  // namespace
}  // namespace tandem
