#pragma once

#include <tandem/train_step.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/deeplab/deeplab.h"
#include "models/deeplab/pixel_losses.h"
#include "recipes/segment/data_options.h"

namespace tandem::segment {

// The weights of the loss terms, by the names of the guide's flags. A weight of 0 leaves the term out.
struct LossOptions {
  double l_segs = 1;
  double l_pseudo = 0;
  double l_lorm = 0;
  double l_ds = 0;
  double l_dc = 0;
  double l_dice = 0;
  double label_smooth = 0;
  double mined_fraction = 1;
  std::vector<double> class_weights = {};
};

template <class Visitor>
void visit_fields(LossOptions& o, Visitor&& field) {
  field("l-segs", o.l_segs, "weight of the cross-entropy of the labels (scribbles, or full masks)");
  field("l-pseudo,l-pesudo", o.l_pseudo, "weight of the cross-entropy of the pseudo labels");
  field("l-lorm", o.l_lorm, "weight of the LoRM loss");
  field("l-ds", o.l_ds, "weight of the entropy term with the scribble distance map");
  field("l-dc", o.l_dc, "weight of the entropy term with the pseudo-label distance map");
  field("l-dice", o.l_dice, "weight of the Dice loss of the labels, of each micro-batch");
  field("label-smooth", o.label_smooth, "label smoothing of the pseudo labels");
  field("mined-fraction", o.mined_fraction,
        "fraction of the labelled pixels of a micro-batch, the hardest, that the cross-entropies use; 1: all");
  field("class-weights", o.class_weights,
        "weight of each class in the cross-entropy of labels and pseudo labels; empty: 1");
}
void validate(const LossOptions& options);

// An Error if a term has a weight but not its labels or its module, which the hint names.
void check_losses(const LossOptions& options, const DataOptions& data, bool has_lorm);

// The labels and maps that are read although every term that uses them has weight 0, with the flags of these terms, for
// the user; empty: none.
std::string unused_planes(const LossOptions& options, const DataOptions& data);

// An Error unless there are no class weights, or as many as classes.
void check_class_weights(const LossOptions& options, int num_classes);

// The counts of the terms that follow from the targets alone (not LoRM, and no cross-entropy with mining), on the CPU.
std::vector<KnownCount> known_counts(const LossOptions& options, const PixelTargets& targets);

// The terms l_segs, l_pseudo, l_lorm, l_ds, l_dc and l_dice that have a weight. Their counts are pixels (of LoRM,
// feature values), with a look at the device for those that `known` does not have; work is in images.
Loss segment_loss(const LossOptions& options, const DeeplabOutput& output, const PixelTargets& targets,
                  std::span<const KnownCount> known, std::int64_t num_images);

}  // namespace tandem::segment
