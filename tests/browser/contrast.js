() => {
    const context = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
    const rgb = colour => {
        context.clearRect(0, 0, 1, 1);
        context.fillStyle = colour;
        context.fillRect(0, 0, 1, 1);
        return [...context.getImageData(0, 0, 1, 1).data];
    };
    const luminance = ([r, g, b]) => [r, g, b].map(value => value / 255)
        .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
    const behind = element => {
        for (; element; element = element.parentElement) {
            const colour = rgb(getComputedStyle(element).backgroundColor);
            if (colour[3] > 250) return colour;
        }
        return [255, 255, 255];
    };
    const found = [];
    for (const element of document.querySelectorAll('.lowpeak *')) {
        const own = [...element.childNodes].some(n => n.nodeType === 3 && n.data.trim());
        if (!own || element.tagName === 'STYLE' || !element.checkVisibility()) continue;
        const [a, b] = [rgb(getComputedStyle(element).color), behind(element)].map(luminance);
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        found.push([element.textContent.slice(0, 40), ratio]);
    }
    return found;
}
