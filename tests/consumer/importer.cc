// Links the importer and asks it for a model that is not there. Knows no model.
#include <headway/error.h>
#include <headway/model.h>

int main() {
  try {
    headway::load_model("no such file.onnx");
  } catch (const headway::Error& error) {
    return error.code() == headway::ErrorCode::kIo ? 0 : 2;
  }
  return 1;
}
