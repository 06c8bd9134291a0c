"""Build the models of the synthetic benchmark: three of our own, and all that torchvision has."""

from typing import Any, Iterator, List

from torch import nn

CLASSES = 1000
BLOCKS = (3, 4, 6, 3)
"""Number of bottlenecks in each of the four stages of a ResNet-50 (He et al. 2015, table 1)."""
VGG16 = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
"""Channels and number of the convolutions before each pooling (Simonyan and Zisserman 2014, D)."""
SIDE = 224
SIDES = {"inception_v3": 299}
"""Pixels of a side of the images, where they are not 224."""


class UnknownModel(Exception):
    """Signal that there is no such model here. The message is written for a user."""


class Bottleneck(nn.Module):  # type: ignore[misc]  # torch is not there when types are checked
    """Apply 1x1, 3x3 and 1x1 convolutions beside a shortcut; 4 * `width` channels go out."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        out = 4 * width
        self.body = nn.Sequential(
            *_convolution(channels, width, 1, 1),
            nn.ReLU(inplace=True),
            *_convolution(width, width, 3, stride),
            nn.ReLU(inplace=True),
            *_convolution(width, out, 1, 1),
        )
        straight = stride == 1 and channels == out
        self.shortcut = nn.Sequential(*([] if straight else _convolution(channels, out, 1, stride)))
        self.last = nn.ReLU(inplace=True)

    def forward(self, images: Any) -> Any:
        """Return the output of the block for a batch of images."""
        return self.last(self.body(images) + self.shortcut(images))


def _convolution(channels: int, out: int, kernel: int, stride: int) -> List[nn.Module]:
    convolution = nn.Conv2d(channels, out, kernel, stride, kernel // 2, bias=False)
    return [convolution, nn.BatchNorm2d(out)]


def _bottlenecks() -> Iterator[nn.Module]:
    channels = 64
    for stage, count in enumerate(BLOCKS):
        width = 64 << stage
        for block in range(count):
            yield Bottleneck(channels, width, 2 if stage and not block else 1)
            channels = 4 * width


def resnet50() -> nn.Module:
    """Build a ResNet-50: 25.6 million parameters."""
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, CLASSES)]
    stem = [*_convolution(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    return nn.Sequential(*stem, *_bottlenecks(), *head)


def vgg16() -> nn.Module:
    """Build a VGG-16: 138.4 million parameters."""
    body = []  # type: List[nn.Module]
    channels = 3
    for width, count in VGG16:
        for _ in range(count):
            body += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU(inplace=True)]
            channels = width
        body.append(nn.MaxPool2d(2))
    body += [nn.AdaptiveAvgPool2d(7), nn.Flatten()]
    for inputs in (512 * 7 * 7, 4096):
        body += [nn.Linear(inputs, 4096), nn.ReLU(inplace=True), nn.Dropout()]
    return nn.Sequential(*body, nn.Linear(4096, CLASSES))


def small() -> nn.Module:
    """Build two convolutions and a classifier.

    It takes seconds on a laptop, and calls every library that a large model calls.
    """
    body = [*_convolution(3, 16, 7, 4), nn.ReLU(inplace=True), *_convolution(16, 32, 3, 4)]
    return nn.Sequential(*body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, CLASSES))


OWN = {"resnet50": resnet50, "small": small, "vgg16": vgg16}


def build(name: str) -> nn.Module:
    """Build a model by its name, in capitals or not. Raises UnknownModel for a name of none."""
    known = name.lower()
    if known in OWN:
        return OWN[known]()
    try:
        from torchvision import models
    except ImportError as error:
        text = "there is no model `{}` without torchvision ({}); there are: {}"
        raise UnknownModel(text.format(name, error, ", ".join(sorted(OWN)))) from None
    maker = getattr(models, known, None)
    if not callable(maker):
        text = "torchvision {} has no model `{}`"
        raise UnknownModel(text.format(getattr(models, "__version__", "of this image"), name))
    return maker()


def side_of(name: str) -> int:
    """Return how many pixels the images for a model have on a side."""
    return SIDES.get(name.lower(), SIDE)


def scores(output: Any) -> Any:
    """Return the scores of a batch; some models of torchvision give more beside them."""
    return getattr(output, "logits", output)
