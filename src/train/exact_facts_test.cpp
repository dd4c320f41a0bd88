#include <gtest/gtest.h>
#include <tandem/training.h>

#include <algorithm>

#include "base/error_test.h"
#include "base/json.h"
#include "base/text.h"
#include "multiproc/shared_folder.h"
#include "train/small_training_test.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// A run of one step of samples with that key.
std::vector<std::string> run_with_data(const fs::path& folder, const BatchOptions& batch, const std::string& key) {
  Communicator comm = Communicator::join();
  SmallModel model(make_small_net(comm.device()), comm);
  AdamW optimizer(*model.module());
  LossScaler scaler(Precision::Fp32, comm.device());
  const BatchPlan plan = plan_batch(batch, 1);
  Sampler sampler(
      {.num_samples = 37, .batch_size = 3, .batches_per_step = plan.batches_per_step(), .seed = 5, .tail = Tail::Pad},
      {});
  Training training(TrainedPart{*model.module(), optimizer, scaler}, comm, plan, {.max_steps = 1, .seed = 5}, folder);
  SampleSource source = source_of(sampler);
  source.content_key = key;
  training.begin(source);
  while (training.has_next()) {
    const auto loss = [&](const SampleBatch& b) { return small_loss(model, b); };
    train_step(model, optimizer, scaler, sampler.next(), loss, training.step_options(0.1));
    training.end_step();
  }
  return training.notes();
}

TEST(ExactMode, DoesNotResumeWithOtherData) {
  const SharedFolder folder;
  run_with_data(folder / "run", kFourShards, "first-data");
  EXPECT_EQ(run_with_data(folder / "run", kFourShards, "first-data").size(), 1U);
  const Error error = error_of([&] { run_with_data(folder / "run", kFourShards, "other-data"); });
  EXPECT_EQ(error.kind(), ErrorKind::Checkpoint);
  EXPECT_TRUE(says(error.message(), {"data", "first-data", "other-data"}));
  EXPECT_TRUE(says(error.hint(), {"--shards"}));
  EXPECT_EQ(run_with_data(folder / "run", kFourShards, "").size(), 1U) << "unknown";
  const auto notes = run_with_data(folder / "run", {.batch_size = 3, .accumulate = 4}, "other-data");
  EXPECT_EQ(std::ranges::count_if(notes, [](const std::string& note) { return note.find("other-data") < note.size(); }),
            1);
}

// Saves the checkpoint again with a fact of state.json changed or, if `value` is empty, left out.
void change_fact(const fs::path& folder, const std::string& name, const std::string& value) {
  Checkpoint checkpoint = load_checkpoint(find_checkpoint(folder).path.value());
  Json::Object state = parse_json(checkpoint.state, "state.json").as_object();
  for (auto& [member, json] : state) {
    if (member != "facts") continue;
    Json::Object facts = json.as_object();
    EXPECT_EQ(std::ranges::count(facts, name, [](const auto& fact) { return fact.first; }), 1);
    std::erase_if(facts, [&](const auto& fact) { return fact.first == name; });
    if (!value.empty()) facts.emplace_back(name, value);
    json = facts;
  }
  checkpoint.state = json_text(Json(state));
  save_checkpoint(folder, checkpoint);
}

TEST(ExactMode, DoesNotResumeOnAnotherProcessor) {
  const SharedFolder folder;
  run_with_data(folder / "run", kFourShards, "");
  change_fact(folder / "run", "processor", "VSX on power9");
  const Error error = error_of([&] { run_with_data(folder / "run", kFourShards, ""); });
  EXPECT_EQ(error.kind(), ErrorKind::Checkpoint);
  EXPECT_TRUE(says(error.message(), {"processor", "VSX on power9", " on "}));
  change_fact(folder / "run", "processor", "");
  run_with_data(folder / "run", kFourShards, "");  // saved by a version that did not know it
}

}  // namespace
}  // namespace tandem
