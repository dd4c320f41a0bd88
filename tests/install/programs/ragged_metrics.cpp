// Metrics of a set that does not divide evenly: a mean loss, a confusion matrix, and boxes, of which an image has any
// number. Each rank evaluates some of the images; every rank gets the metrics of all of them.

#include <tandem/tandem.h>
#include <torch/torch.h>

#include "plain.h"

constexpr std::int64_t kImages = 37, kBatch = 4, kClasses = 5;

// Eight numbers for each image, its class, and the network that guesses it.
torch::Tensor images(const std::vector<std::int64_t>& ids) {
  return torch::sin(torch::tensor(ids).to(torch::kDouble).unsqueeze(1) * (torch::arange(8) + 1) * 0.4);
}
torch::Tensor labels(const std::vector<std::int64_t>& ids) { return torch::tensor(ids) * 3 % kClasses; }
torch::nn::Linear make_net() {
  torch::nn::Linear net(8, kClasses);
  plain::fill(*net);
  net->to(torch::kDouble);
  return net;
}

// 0 to 6 boxes of an image: x, y, width, height.
torch::Tensor boxes_of(std::int64_t id) {
  return torch::arange(id % 7 * 4, torch::kDouble).view({-1, 4}) + static_cast<double>(id);
}

double loss_sum(const torch::Tensor& scores, const torch::Tensor& wanted) {
  return torch::nll_loss(torch::log_softmax(scores, 1), wanted, {}, torch::Reduction::Sum).item<double>();
}

int main() {
  return tandem::run_worker([](const tandem::World& world) {
    auto comm = tandem::Communicator::join();
    auto net = make_net();
    tandem::Sampler sampler = tandem::evaluation_sampler(kImages, kBatch, world);
    tandem::MeanMetric loss;
    tandem::ConfusionMatrix matrix(kClasses);
    tandem::GatheredRows<torch::Tensor> boxes(kImages);
    for (const auto& batch : tandem::evaluate(comm, sampler)) {
      const auto scores = net->forward(images(batch.ids));
      loss.add(batch, loss_sum(scores, labels(batch.ids)), batch.num_counted);
      matrix.add(labels(batch.ids), scores.argmax(1));
      std::vector<torch::Tensor> found;
      for (const std::int64_t id : batch.ids) found.push_back(boxes_of(id));
      boxes.add(batch, found);
    }
    const tandem::MetricSum sum = loss.reduce(comm);
    const tandem::ConfusionMatrix all = matrix.reduce(comm);
    const std::vector<torch::Tensor> rows = boxes.gather(comm);

    // The same in one process, on the whole set.
    const torch::NoGradGuard no_grad;
    std::vector<std::int64_t> ids;
    for (std::int64_t i = 0; i < kImages; ++i) ids.push_back(i);
    const auto scores = net->forward(images(ids));
    const auto pairs = labels(ids) * kClasses + scores.argmax(1);
    const auto counts = torch::bincount(pairs, {}, kClasses * kClasses).view({kClasses, kClasses});
    std::int64_t num_wrong = 0, num_boxes = 0;
    for (std::int64_t i = 0; i < kClasses * kClasses; ++i) {
      num_wrong += all.count(i / kClasses, i % kClasses) != counts[i / kClasses][i % kClasses].item<std::int64_t>();
    }
    for (std::int64_t id = 0; id < kImages; ++id) {
      num_wrong += !rows[static_cast<std::size_t>(id)].equal(boxes_of(id));
      num_boxes += rows[static_cast<std::size_t>(id)].size(0);
    }
    const double expected = loss_sum(scores, labels(ids)) / kImages;
    const double accuracy = counts.diag().sum().item<double>() / kImages;
    if (!world.is_main()) return;
    std::cout << "{\"difference\": " << std::abs(sum.mean() / expected - 1) << ", \"wrong\": " << num_wrong
              << ", \"counted\": " << sum.count << ", \"boxes\": " << num_boxes
              << ", \"difference in accuracy\": " << std::abs(all.accuracy() - accuracy) << "}" << std::endl;
  });
}
