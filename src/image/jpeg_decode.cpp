#include <tandem/error.h>

#include <algorithm>
#include <cstdio>

#include <jerror.h>

#include "base/text.h"
#include "image/decoders.h"
#include "image/exif.h"
#include "image/jpeg_errors.h"

namespace tandem {
namespace {

[[noreturn]] void give_up(j_common_ptr info) {
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  info->err->format_message(info, errors->message.data());
  std::longjmp(errors->jump, 1);  // NOLINT: what lies between has no destructors
}

// Markers that other programs write wrongly; the pixels are right all the same, and Pillow reads them too.
bool is_harmless(int message) {
  return message == JWRN_EXTRANEOUS_DATA || message == JWRN_JFIF_MAJOR || message == JWRN_ADOBE_XFORM ||
         message == JWRN_BOGUS_ICC;
}

void on_message(j_common_ptr info, int level) {
  if (level < 0 && !is_harmless(info->err->msg_code)) give_up(info);
}

void say_nothing(j_common_ptr) {}

// A file of a few kilobytes can hold thousands of scans that each go over all pixels.
void limit_scans(j_common_ptr info) {
  constexpr int kMostScans = 500;
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMostScans) return;
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  std::snprintf(errors->message.data(), errors->message.size(), "more than %d scans", kMostScans);
  std::longjmp(errors->jump, 1);  // NOLINT: what lies between has no destructors
}

struct JpegDecompression : jpeg_decompress_struct {
  JpegDecompression() : jpeg_decompress_struct{} {}
  ~JpegDecompression() { jpeg_destroy_decompress(this); }
  JpegDecompression(const JpegDecompression&) = delete;
  JpegDecompression& operator=(const JpegDecompression&) = delete;
};

class JpegReader {
 public:
  JpegReader(std::string_view bytes, const std::string& name) : name_(name) {
    info_.err = start_errors(errors_);
    progress_.progress_monitor = limit_scans;
    run([&] {
      jpeg_create_decompress(&info_);
      info_.progress = &progress_;
      jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
      jpeg_read_header(&info_, TRUE);
    });
  }

  ImageHeader header() const {
    return {.height = static_cast<int>(info_.image_height),
            .width = static_cast<int>(info_.image_width),
            .channels = info_.num_components};
  }

  void check_colours() const {
    const J_COLOR_SPACE space = info_.jpeg_color_space;
    if (space == JCS_GRAYSCALE || space == JCS_YCbCr || space == JCS_RGB) return;
    const bool is_print = space == JCS_CMYK || space == JCS_YCCK;
    fail(
        ErrorKind::Data,
        str(name_, " is a JPEG in ", is_print ? "the colours of print (CMYK)" : "unknown colours", ", not grey or RGB"),
        "convert it, such as with: convert in.jpg -colorspace sRGB out.jpg");
  }

  bool is_grey() const { return info_.jpeg_color_space == JCS_GRAYSCALE; }

  Image decode(int channels, int scale) {
    info_.out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    info_.scale_num = 1;
    info_.scale_denom = static_cast<unsigned>(scale);
    info_.do_fancy_upsampling = scale == 1 ? TRUE : FALSE;  // as Pillow's draft mode
    run([&] { jpeg_calc_output_dimensions(&info_); });
    Image image(static_cast<int>(info_.output_height), static_cast<int>(info_.output_width), channels);
    std::uint8_t* pixels = image.pixels.data();
    const std::size_t row_size = image.row_size();
    run([&] {
      jpeg_start_decompress(&info_);
      while (info_.output_scanline < info_.output_height) {
        JSAMPROW row = pixels + info_.output_scanline * row_size;
        jpeg_read_scanlines(&info_, &row, 1);
      }
      jpeg_finish_decompress(&info_);
    });
    return image;
  }

 private:
  template <class Step>
  void run(const Step& step) {
    if (run_step(errors_, step)) return;
    fail(ErrorKind::Data, str(name_, " is a JPEG that cannot be decoded: ", errors_.message.data()),
         "the file is truncated or damaged: copy it again, or take it out of the data");
  }

  const std::string& name_;
  JpegErrors errors_;
  jpeg_progress_mgr progress_ = {};
  JpegDecompression info_;
};

int scale_of(const ImageHeader& header, int least_side) {
  if (least_side <= 0) return 1;
  const int most = std::min(header.height, header.width) / least_side;
  return most >= 8 ? 8 : most >= 4 ? 4 : most >= 2 ? 2 : 1;
}

}  // namespace

jpeg_error_mgr* start_errors(JpegErrors& errors) {
  jpeg_std_error(&errors.manager);
  errors.manager.error_exit = give_up;
  errors.manager.emit_message = on_message;
  errors.manager.output_message = say_nothing;
  return &errors.manager;
}

Image decode_jpeg(std::string_view bytes, const std::string& name, const DecodeOptions& options) {
  JpegReader reader(bytes, name);
  const ImageHeader header = reader.header();
  check_num_pixels(header.height, header.width, options.most_pixels, name);
  reader.check_colours();
  if (options.kind == PixelKind::Indices) {
    fail(ErrorKind::Data, str(name, " is a JPEG, whose values are not exact, where class numbers are needed"),
         "save masks as PNG");
  }
  const int orientation = options.orient ? jpeg_orientation(bytes) : 1;
  const bool is_grey = options.kind == PixelKind::Grey;
  Image image = reader.decode(is_grey && reader.is_grey() ? 1 : 3, scale_of(header, options.least_side));
  if (is_grey && image.channels == 3) image = grey_of_rgb(image);
  return orientation == 1 ? image : oriented(image, orientation);
}

ImageHeader decode_jpeg_header(std::string_view bytes, const std::string& name) {
  return JpegReader(bytes, name).header();
}

}  // namespace tandem
